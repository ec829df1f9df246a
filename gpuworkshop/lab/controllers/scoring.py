"""Which of the nodes that fit is best: the emptiest, away from the pod's siblings, and to its liking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from gpuworkshop.lab.api.objects import Object, controller_of, name_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import node_affinity
from gpuworkshop.lab.controllers.fitting import allocatable
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.taints import PREFER, taints_of, untolerated

# The weights of the real one's default profile.
LEAST_ALLOCATED, SPREAD, AFFINITY, TAINTS = 1, 2, 2, 3


def best(registry: Registry, pod: Object, requests: Mapping[str, Decimal], nodes: Sequence[Object]) -> Object:
    """The node with the highest score; of equals the one with the fewest pods, then the first by name."""
    if len(nodes) == 1:
        return nodes[0]
    index = index_of(registry)
    owner = (controller_of(pod) or {}).get("uid", "")
    siblings = {name_of(node): index.siblings(name_of(node), owner) if owner else 0 for node in nodes}
    liked = {name_of(node): node_affinity.preference(pod["spec"], node) for node in nodes}
    disliked = {name_of(node): _disliked(pod, node) for node in nodes}

    def rank(node: Object) -> tuple[float, Decimal, str]:
        name = name_of(node)
        score = LEAST_ALLOCATED * _free(registry, node, requests)
        score += SPREAD * (1 - _part(siblings[name], siblings))
        score += AFFINITY * _part(liked[name], liked)
        score += TAINTS * (1 - _part(disliked[name], disliked))
        return -round(score, 6), index.requested(name).get("pods", Decimal()), name

    return min(nodes, key=rank)


def _disliked(pod: Object, node: Object) -> int:
    return len(untolerated(taints_of(node), pod["spec"].get("tolerations") or (), [PREFER]))


def _free(registry: Registry, node: Object, requests: Mapping[str, Decimal]) -> float:
    """The part of CPU and memory that stays free, on average."""
    has, taken = allocatable(node), index_of(registry).requested(name_of(node))
    parts = [
        1 - float((taken.get(name, Decimal()) + requests.get(name, Decimal())) / has[name])
        for name in ("cpu", "memory")
        if has.get(name)
    ]
    return sum(parts) / len(parts) if parts else 0.0


def _part(value: int, values: Mapping[str, int]) -> float:
    highest = max(values.values(), default=0)
    return value / highest if highest else 0.0
