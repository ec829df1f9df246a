"""Pods that are to be spread over zones or hosts: `topologySpreadConstraints` with DoNotSchedule.

Those with ScheduleAnyway are wishes, which the scores leave to the spreading of a controller's pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuworkshop.lab.api.kinds import NODE
from gpuworkshop.lab.api.object_selectors import selects
from gpuworkshop.lab.api.objects import Object, is_deleted, labels_of, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import node_affinity
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.pods import is_finished
from gpuworkshop.lab.controllers.taints import NO_EXECUTE, NO_SCHEDULE, taints_of, untolerated

UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_LABEL = f"{UNEVEN} (missing required label)"
Constraint = Mapping[str, Any]


@dataclass(frozen=True)
class _Spread:
    """One constraint, with how many pods that it selects each domain has; `own` is 1 if the pod is one."""

    key: str
    most: int
    least_domains: int
    own: int
    counts: Counter[str]

    def is_uneven_with(self, domain: str) -> bool:
        """Whether one more pod there would make the skew too large."""
        fewest = min(self.counts.values(), default=0)
        if len(self.counts) < self.least_domains:
            fewest = 0
        return self.counts[domain] + self.own - fewest > self.most


class Spreading:
    """The constraints of one pod, as the cluster is now."""

    def __init__(self, registry: Registry, pod: Object) -> None:
        constraints: Sequence[Constraint] = [
            each
            for each in pod["spec"].get("topologySpreadConstraints") or ()
            if each["whenUnsatisfiable"] == "DoNotSchedule"
        ]
        keys = {each["topologyKey"] for each in constraints}
        every = registry.list(NODE) if constraints else ()
        nodes = [node for node in every if labels_of(node).keys() >= keys]
        self._spreads = [_spread(registry, pod, each, nodes) for each in constraints]

    def refusal(self, node: Object) -> str:
        """Why the pod may not go to the node; "" if it may."""
        for spread in self._spreads:
            domain = labels_of(node).get(spread.key)
            if domain is None:
                return NO_LABEL
            if spread.is_uneven_with(domain):
                return UNEVEN
        return ""


def _spread(registry: Registry, pod: Object, constraint: Constraint, nodes: Sequence[Object]) -> _Spread:
    selector = _selector(pod, constraint)
    counts: Counter[str] = Counter()
    for node in nodes:
        if _counts(pod, constraint, node):
            domain = labels_of(node)[constraint["topologyKey"]]
            counts[domain] += sum(
                namespace_of(other) == namespace_of(pod)
                and not is_deleted(other)
                and not is_finished(other)
                and selects(selector, labels_of(other))
                for other in index_of(registry).on_node(name_of(node))
            )
    return _Spread(
        constraint["topologyKey"],
        int(constraint["maxSkew"]),
        int(constraint.get("minDomains") or 1),
        int(selects(selector, labels_of(pod))),
        counts,
    )


def _selector(pod: Object, constraint: Constraint) -> Mapping[str, Any] | None:
    """The constraint's selector, which `matchLabelKeys` narrows to pods with the same labels."""
    selector: Mapping[str, Any] | None = constraint.get("labelSelector")
    same = {
        key: labels_of(pod)[key] for key in constraint.get("matchLabelKeys") or () if key in labels_of(pod)
    }
    if selector is None or not same:
        return selector
    return {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **same}}


def _counts(pod: Object, constraint: Constraint, node: Object) -> bool:
    """Whether the node is one over which the constraint spreads."""
    honoured = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
    if honoured and not node_affinity.allows(pod["spec"], node):
        return False
    if constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore":
        return True
    tolerations = pod["spec"].get("tolerations") or ()
    return not untolerated(taints_of(node), tolerations, [NO_SCHEDULE, NO_EXECUTE])
