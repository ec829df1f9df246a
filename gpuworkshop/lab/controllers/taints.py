"""Taints of nodes and tolerations of pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpuworkshop.lab.api.objects import Object

NO_SCHEDULE, NO_EXECUTE, PREFER = "NoSchedule", "NoExecute", "PreferNoSchedule"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

Taint = Mapping[str, Any]
Toleration = Mapping[str, Any]


def taints_of(node: Object) -> list[dict[str, Any]]:
    """The node's taints."""
    return (node.get("spec") or {}).get("taints") or []


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether one toleration tolerates one taint."""
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], effects: Iterable[str]
) -> list[Taint]:
    """The taints with one of these effects that none of the tolerations tolerates."""
    known, counted = list(tolerations), set(effects)
    return [
        taint
        for taint in taints
        if taint.get("effect") in counted and not any(tolerates(each, taint) for each in known)
    ]
