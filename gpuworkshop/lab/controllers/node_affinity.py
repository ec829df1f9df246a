"""Which nodes a pod's `nodeSelector` and node affinity allow, and prefer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuworkshop.lab.api.object_selectors import contains, meets
from gpuworkshop.lab.api.objects import Object, labels_of, name_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def allows(spec: Mapping[str, Any], node: Object) -> bool:
    """Whether a pod with this spec may run on the node, by its selector and required affinity."""
    if not contains(labels_of(node), spec.get("nodeSelector") or {}):
        return False
    required = _node_affinity(spec).get(REQUIRED)
    if required is None:
        return True
    return any(_matches(term, node) for term in required.get("nodeSelectorTerms") or ())


def preference(spec: Mapping[str, Any], node: Object) -> int:
    """The sum of the weights of the preferred terms that the node matches."""
    preferred = _node_affinity(spec).get(PREFERRED) or ()
    return sum(int(each["weight"]) for each in preferred if _matches(each["preference"], node))


def named_nodes(spec: Mapping[str, Any]) -> set[str] | None:
    """The nodes that the required affinity names, as a DaemonSet's pod has it; None if it names none."""
    terms = (_node_affinity(spec).get(REQUIRED) or {}).get("nodeSelectorTerms") or ()
    names: set[str] = set()
    for term in terms:
        fields = [field for field in term.get("matchFields") or () if field["operator"] == "In"]
        if not fields:
            return None
        names |= set(fields[0]["values"])
    return names or None


def _node_affinity(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return (spec.get("affinity") or {}).get("nodeAffinity") or {}


def _matches(term: Mapping[str, Any], node: Object) -> bool:
    """Whether a term matches; an empty one matches nothing."""
    labels, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    return (
        bool(labels or fields)
        and all(meets(requirement, labels_of(node)) for requirement in labels)
        and all(meets(requirement, {"metadata.name": name_of(node)}) for requirement in fields)
    )
