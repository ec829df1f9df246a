"""Whether a pod fits on a node, and if not, why: the scheduler's filters, in its order and in its words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from gpuworkshop.lab.api.objects import Object, name_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import node_affinity
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.pod_affinity import Neighbours, neighbours
from gpuworkshop.lab.controllers.pods import is_finished
from gpuworkshop.lab.controllers.requests import amounts, pod_requests
from gpuworkshop.lab.controllers.taints import (
    NO_EXECUTE,
    NO_SCHEDULE,
    UNSCHEDULABLE,
    taints_of,
    tolerates,
    untolerated,
)
from gpuworkshop.lab.controllers.topology_spread import UNEVEN, Spreading

NO_NODES = "no nodes available to schedule pods"
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"
# What the scheduler's part for devices says of a pod that has no claims to any.
NO_CLAIMS = "no new claims to deallocate"


@dataclass(frozen=True)
class Refusal:
    """Why one node cannot take the pod; `crowded` if it could, were fewer pods there."""

    reasons: Sequence[str]
    crowded: bool


class Fit:
    """One pod, to be tried on nodes."""

    def __init__(self, registry: Registry, pod: Object) -> None:
        self._registry, self._spec = registry, pod["spec"]
        self.requests = pod_requests(pod)
        self._named = node_affinity.named_nodes(self._spec)
        self._neighbours: Neighbours | None = neighbours(registry, pod)
        self._spreading = Spreading(registry, pod)
        self._ports = _host_ports(self._spec)

    def refusal(self, node: Object) -> Refusal | None:
        """The first filter that the node does not pass; None if it passes all."""
        if reason := self._unsuitable(node):
            return Refusal([reason], crowded=False)
        if self._ports and self._ports & self._taken_ports(node):
            reason = "node(s) didn't have free ports for the requested pod ports"
            return Refusal([reason], crowded=True)
        if shortage := self._insufficient(node):
            return shortage
        if reason := self._spreading.refusal(node):
            return Refusal([reason], crowded=reason == UNEVEN)
        reason = self._neighbours.refusal(node) if self._neighbours else ""
        return Refusal([reason], crowded="anti" in reason) if reason else None

    def _unsuitable(self, node: Object) -> str:
        if self._named is not None and name_of(node) not in self._named:
            return "node(s) didn't satisfy plugin(s) [NodeAffinity]"
        tolerations = self._spec.get("tolerations") or []
        cordon = {"key": UNSCHEDULABLE, "effect": NO_SCHEDULE}
        if (node.get("spec") or {}).get("unschedulable") and not any(
            tolerates(each, cordon) for each in tolerations
        ):
            return "node(s) were unschedulable"
        if untolerated(taints_of(node), tolerations, [NO_SCHEDULE, NO_EXECUTE]):
            return "node(s) had untolerated taint(s)"
        if not node_affinity.allows(self._spec, node):
            return "node(s) didn't match Pod's node affinity/selector"
        return ""

    def _insufficient(self, node: Object) -> Refusal | None:
        """What the node has too little of; more than it has at all no other pod's end can give."""
        has, reasons, crowded = allocatable(node), [], True
        requested = index_of(self._registry).requested(name_of(node))
        for name, asked in self.requests.items():
            whole = has.get(name, Decimal())
            if asked and asked > whole - requested.get(name, Decimal()):
                reasons.append("Too many pods" if name == "pods" else f"Insufficient {name}")
                crowded = crowded and (name == "pods" or asked <= whole)
        return Refusal(reasons, crowded) if reasons else None

    def _taken_ports(self, node: Object) -> set[tuple[int, str]]:
        taken: set[tuple[int, str]] = set()
        for pod in index_of(self._registry).on_node(name_of(node)):
            taken |= set() if is_finished(pod) else _host_ports(pod["spec"])
        return taken


def allocatable(node: Object) -> dict[str, Decimal]:
    """What the node has for pods."""
    return amounts((node.get("status") or {}).get("allocatable"))


def explanation(refusals: Sequence[Refusal], policy: str, missing: str = "") -> str:
    """The message of a pod that no node can take; `missing` is what it lacks whatever the node."""
    if not refusals:
        return NO_NODES
    count = len(refusals)
    words = missing or _tally(reason for refusal in refusals for reason in refusal.reasons)
    message = f"0/{count} nodes are available: {words}. {NO_CLAIMS}, preemption: "
    if policy == "Never":
        return f"{message}not eligible due to preemptionPolicy=Never."
    help_ = _tally(NO_VICTIMS if refusal.crowded else NO_HELP for refusal in refusals)
    return f"{message}0/{count} nodes are available: {help_}."


def _tally(reasons: Iterable[str]) -> str:
    return ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))


def _host_ports(spec: Mapping[str, Any]) -> set[tuple[int, str]]:
    return {
        (int(port["hostPort"]), port.get("protocol") or "TCP")
        for container in spec["containers"]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    }
