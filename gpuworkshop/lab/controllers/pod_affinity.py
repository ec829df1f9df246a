"""Pods that want to be near other pods, or far from them, within a topology such as a host or a zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuworkshop.lab.api.kinds import NAMESPACE, NODE, POD
from gpuworkshop.lab.api.object_selectors import selects
from gpuworkshop.lab.api.objects import Object, labels_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.index import REQUIRED, index_of
from gpuworkshop.lab.controllers.pods import is_finished

Domain = tuple[str, str]  # a topology key, and its value
Term = Mapping[str, Any]


@dataclass(frozen=True)
class Neighbours:
    """What the required terms of a pod, and of those that run, come to: domains to be in or not."""

    wanted: Sequence[tuple[str, frozenset[str] | None]]  # None: any domain, for the first pod of a group
    avoided: frozenset[Domain]
    closed: frozenset[Domain]

    def refusal(self, node: Object) -> str:
        """Why the pod may not go to the node; "" if it may."""
        labels = labels_of(node)
        here = set(labels.items())
        if self.closed & here:
            return "node(s) didn't satisfy existing pods anti-affinity rules"
        for key, values in self.wanted:
            if key not in labels or (values is not None and labels[key] not in values):
                return "node(s) didn't match pod affinity rules"
        return "node(s) didn't match pod anti-affinity rules" if self.avoided & here else ""


def neighbours(registry: Registry, pod: Object) -> Neighbours | None:
    """The pod's neighbours; None, for speed, where no affinity is involved."""
    near, far = _terms(pod, "podAffinity"), _terms(pod, "podAntiAffinity")
    exclusive = list(index_of(registry).exclusive())
    if not near and not far and not exclusive:
        return None
    bound = [
        other for other in registry.list(POD) if other["spec"].get("nodeName") and not is_finished(other)
    ]
    closed = {
        domain
        for other in exclusive
        for term in _terms(other, "podAntiAffinity")
        if _selects(registry, term, other, pod)
        for domain in _domains(registry, term, [other])
    }
    avoided = {
        domain for term in far for domain in _domains(registry, term, _matching(registry, term, pod, bound))
    }
    wanted = [_wanted(registry, term, pod, bound) for term in near]
    return Neighbours(wanted, frozenset(avoided), frozenset(closed))


def _terms(pod: Object, side: str) -> list[Term]:
    return ((pod["spec"].get("affinity") or {}).get(side) or {}).get(REQUIRED) or []


def _wanted(
    registry: Registry, term: Term, pod: Object, bound: Iterable[Object]
) -> tuple[str, frozenset[str] | None]:
    found = _matching(registry, term, pod, bound)
    if not found and _selects(registry, term, pod, pod):
        return term["topologyKey"], None
    return term["topologyKey"], frozenset(value for _, value in _domains(registry, term, found))


def _matching(registry: Registry, term: Term, owner: Object, pods: Iterable[Object]) -> list[Object]:
    return [pod for pod in pods if _selects(registry, term, owner, pod)]


def _selects(registry: Registry, term: Term, owner: Object, pod: Object) -> bool:
    """Whether the term of `owner` selects `pod`, by namespace and labels."""
    namespaces, selector = term.get("namespaces") or [], term.get("namespaceSelector")
    if selector is None:
        near = namespace_of(pod) in (namespaces or [namespace_of(owner)])
    else:
        found = registry.find(NAMESPACE, "", namespace_of(pod)) or {}
        near = namespace_of(pod) in namespaces or selects(selector, labels_of(found))
    return near and selects(term.get("labelSelector"), labels_of(pod))


def _domains(registry: Registry, term: Term, pods: Iterable[Object]) -> set[Domain]:
    key = term["topologyKey"]
    nodes = (registry.find(NODE, "", pod["spec"]["nodeName"]) or {} for pod in pods)
    return {(key, labels_of(node)[key]) for node in nodes if key in labels_of(node)}
