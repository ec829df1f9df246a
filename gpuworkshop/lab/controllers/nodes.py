"""Nodes: taints that follow their state, and pods that taints drive away or whose node is gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpuworkshop.lab.api.kinds import NODE, POD, Kind
from gpuworkshop.lab.api.objects import (
    Object,
    condition,
    is_deleted,
    name_of,
    namespace_of,
    seconds_of,
    timestamp,
    uid_of,
)
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, own_key
from gpuworkshop.lab.controllers.pods import is_finished
from gpuworkshop.lab.controllers.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    NOT_READY,
    UNSCHEDULABLE,
    taints_of,
    tolerates,
)


class NodeController(Controller):
    """Taints nodes that are cordoned or not ready, so that `describe node` and the scheduler agree."""

    name = "node-lifecycle-controller"
    watches: Mapping[Kind, Keys] = {NODE: own_key}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Set and take away the two taints."""
        node = registry.find(NODE, *key)
        if node is None:
            return None
        wanted = set()
        if (node.get("spec") or {}).get("unschedulable"):
            wanted.add(UNSCHEDULABLE)
        if (condition(node, "Ready") or {}).get("status") != "True":
            wanted.add(NOT_READY)
        now = timestamp(registry.now())

        def change(live: Object) -> None:
            taints = [taint for taint in taints_of(live) if not _is_superfluous(taint, wanted)]
            known = {taint["key"] for taint in taints if taint.get("effect") == NO_SCHEDULE}
            added = [{"key": key, "effect": NO_SCHEDULE, "timeAdded": now} for key in sorted(wanted - known)]
            spec = live.setdefault("spec", {})
            spec.pop("taints", None)
            if taints or added:
                spec["taints"] = [*taints, *added]

        registry.modify(NODE, "", key[1], change)
        return None


def _is_superfluous(taint: dict[str, Any], wanted: set[str]) -> bool:
    ours = taint["key"] in (UNSCHEDULABLE, NOT_READY) and taint.get("effect") == NO_SCHEDULE
    return ours and taint["key"] not in wanted


def _node_of(_: Registry, pod: Object) -> Iterable[Key]:
    if node := pod["spec"].get("nodeName"):
        yield "", node


class PodGarbageController(Controller):
    """Deletes the pods of nodes that are gone, and those that a NoExecute taint drives away."""

    name = "pod-garbage-collector"
    watches: Mapping[Kind, Keys] = {NODE: own_key, POD: _node_of}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Look at the pods of one node; the seconds until the next toleration ends."""
        pods = index_of(registry).on_node(key[1])
        node = registry.find(NODE, *key)
        if node is None:
            for pod in pods:
                registry.delete(POD, namespace_of(pod), name_of(pod), grace_period=0, uid=uid_of(pod))
            return None
        driving = [taint for taint in taints_of(node) if taint.get("effect") == NO_EXECUTE]
        if not driving:
            return None
        waits = []
        for pod in pods:
            left = None if is_deleted(pod) or is_finished(pod) else _stays_for(pod, driving, registry.now())
            if left is not None and left <= 0:
                self._evict(registry, pod)
            elif left is not None:
                waits.append(left)
        return min(waits, default=None)

    def _evict(self, registry: Registry, pod: Object) -> None:
        message = f"Marking for deletion Pod {namespace_of(pod)}/{name_of(pod)}"
        registry.event(pod, "Normal", "TaintManagerEviction", message, "taint-eviction-controller")
        registry.delete(POD, namespace_of(pod), name_of(pod), uid=uid_of(pod))


def _stays_for(pod: Object, taints: list[dict[str, Any]], now: float) -> float | None:
    """Seconds for which the pod tolerates all of the taints; None is for ever."""
    ends = []
    for taint in taints:
        found = [each for each in pod["spec"].get("tolerations") or () if tolerates(each, taint)]
        if not found:
            return 0.0
        seconds = [each["tolerationSeconds"] for each in found if each.get("tolerationSeconds") is not None]
        if seconds:
            since = seconds_of(taint["timeAdded"]) if taint.get("timeAdded") else now
            ends.append(since + max(0, min(seconds)) - now)
    return min(ends, default=None)
