"""The arithmetic of a rollout: how many replicas old and new ReplicaSets may have at this moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpuworkshop.lab.api.objects import Object, annotations_of, name_of
from gpuworkshop.lab.controllers.revisions import DESIRED, MOST, oldest_first


def share(value: int | str, whole: int, *, up: bool) -> int:
    """A count, or a percentage such as "25%" of the whole."""
    if isinstance(value, int):
        return value
    part = int(value.removesuffix("%")) * whole / 100
    return math.ceil(part) if up else math.floor(part)


def wanted(workload: Object) -> int:
    """`spec.replicas`."""
    return int(workload["spec"].get("replicas", 1))


def total(replica_sets: Sequence[Object]) -> int:
    """How many replicas they want together."""
    return sum(wanted(replica_set) for replica_set in replica_sets)


def status_total(replica_sets: Sequence[Object], field: str) -> int:
    """The sum of a count of their statuses."""
    return sum(int((replica_set.get("status") or {}).get(field) or 0) for replica_set in replica_sets)


@dataclass(frozen=True)
class Bounds:
    """A Deployment's replicas, how many may be there at most, and how many may be missing."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        """With the surge."""
        return self.replicas + self.surge

    @property
    def fewest(self) -> int:
        """That must be available."""
        return self.replicas - self.unavailable

    @property
    def annotations(self) -> dict[str, str]:
        """What each ReplicaSet remembers of them, to tell a scaling from a rollout."""
        return {DESIRED: str(self.replicas), MOST: str(self.most)}


def bounds_of(deployment: Object) -> Bounds:
    """The bounds by the Deployment's strategy; one of surge and unavailable is at least 1."""
    replicas = wanted(deployment)
    strategy = deployment["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return Bounds(replicas, 0, replicas)
    rolling = strategy.get("rollingUpdate") or {}
    surge = share(rolling.get("maxSurge", "25%"), replicas, up=True)
    unavailable = share(rolling.get("maxUnavailable", "25%"), replicas, up=False)
    if not surge and not unavailable:
        unavailable = 1
    return Bounds(replicas, surge, min(unavailable, replicas))


def size_of_new(bounds: Bounds, new: Object | None, everything: Sequence[Object]) -> int:
    """How many replicas the newest ReplicaSet may have now."""
    current = wanted(new) if new else 0
    if current > bounds.replicas:
        return bounds.replicas
    room = bounds.most - total(everything)
    return current + max(0, min(room, bounds.replicas - current))


def sizes_of_old(bounds: Bounds, new: Object, old: Sequence[Object]) -> dict[str, int]:
    """How many replicas each older ReplicaSet may keep: first what is not available goes, then the oldest."""
    everything = [*old, new]
    missing_new = wanted(new) - status_total([new], "availableReplicas")
    may_go = total(everything) - bounds.fewest - missing_new
    sizes = {name_of(replica_set): wanted(replica_set) for replica_set in old}
    if may_go <= 0:
        return sizes
    gone = 0
    for replica_set in oldest_first(old):
        unhealthy = sizes[name_of(replica_set)] - status_total([replica_set], "availableReplicas")
        step = max(0, min(unhealthy, may_go - gone))
        sizes[name_of(replica_set)] -= step
        gone += step
    may_go = min(may_go - gone, status_total(everything, "availableReplicas") - bounds.fewest)
    for replica_set in oldest_first(old):
        step = max(0, min(sizes[name_of(replica_set)], may_go))
        sizes[name_of(replica_set)] -= step
        may_go -= step
    return sizes


def proportional(bounds: Bounds, replica_sets: Sequence[Object]) -> dict[str, int]:
    """Sizes after the Deployment was scaled in the midst of a rollout: each grows or shrinks by its part."""
    active = [replica_set for replica_set in replica_sets if wanted(replica_set)]
    sizes = {name_of(replica_set): wanted(replica_set) for replica_set in active}
    allowed = bounds.most if bounds.replicas else 0
    difference = allowed - sum(sizes.values())
    by_age = oldest_first(active)
    ordered = sorted(reversed(by_age) if difference > 0 else by_age, key=wanted, reverse=True)
    left = difference
    for replica_set in ordered:
        size = wanted(replica_set)
        before = int(annotations_of(replica_set).get(MOST) or 0) or sum(sizes.values())
        part = round(size * allowed / before) - size
        part = max(0, min(part, left)) if difference > 0 else min(0, max(part, left))
        sizes[name_of(replica_set)] += part
        left -= part
    if ordered and left:
        first = name_of(ordered[0])
        sizes[first] = max(0, sizes[first] + left)
    return sizes
