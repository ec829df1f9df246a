"""A pod's status, put together from what its containers say. Nothing here has state."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuworkshop.lab.api.objects import Object, condition
from gpuworkshop.lab.kubelet.resources import qos_class

Condition = tuple[str, bool, str, str]  # type, status, reason, message


@dataclass(frozen=True)
class Summary:
    """How a pod is: `phase`, why it failed as a whole, its addresses, and its containers' statuses."""

    phase: str
    reason: str
    message: str
    address: str
    host: str
    start: str
    init_containers: Sequence[Mapping[str, Any]]
    containers: Sequence[Mapping[str, Any]]
    initialized: bool
    now: str


def status_of(pod: Object, summary: Summary) -> dict[str, Any]:
    """The whole status. Conditions of others are kept, and times of what has not changed."""
    status: dict[str, Any] = {
        "phase": summary.phase,
        "conditions": _conditions(pod, summary),
        "hostIP": summary.host,
        "hostIPs": [{"ip": summary.host}],
        "startTime": summary.start,
        "qosClass": (pod.get("status") or {}).get("qosClass") or qos_class(pod),
    }
    if summary.address:
        status |= {"podIP": summary.address, "podIPs": [{"ip": summary.address}]}
    if summary.reason:
        status |= {"reason": summary.reason, "message": summary.message}
    if summary.init_containers:
        status["initContainerStatuses"] = list(summary.init_containers)
    if summary.containers:
        status["containerStatuses"] = list(summary.containers)
    return status


def _conditions(pod: Object, summary: Summary) -> list[dict[str, Any]]:
    ready = _containers_ready(summary)
    own: list[Condition] = [
        ("PodReadyToStartContainers", bool(summary.address) and not _is_over(summary), "", ""),
        _initialized(summary),
        ("Ready", *(gates(pod) if ready[0] else ready)),
        ("ContainersReady", *ready),
    ]
    if condition(pod, "PodScheduled") is None:
        own.append(("PodScheduled", True, "", ""))
    names = {name for name, *_ in own}
    others = (pod.get("status") or {}).get("conditions") or []
    kept = [dict(found) for found in others if found.get("type") not in names]
    return [*(_condition(pod, each, summary.now) for each in own), *kept]


def _condition(pod: Object, each: Condition, now: str) -> dict[str, Any]:
    kind, is_true, reason, message = each
    before = condition(pod, kind) or {}
    status = "True" if is_true else "False"
    changed = now if before.get("status") != status else before.get("lastTransitionTime") or now
    made = {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": changed}
    return {**made, **({"reason": reason} if reason else {}), **({"message": message} if message else {})}


def _initialized(summary: Summary) -> Condition:
    if summary.phase == "Succeeded":
        return "Initialized", True, "PodCompleted", ""
    if summary.initialized:
        return "Initialized", True, "", ""
    late = [found["name"] for found in summary.init_containers if not _is_done(found)]
    return "Initialized", False, "ContainersNotInitialized", _named("incomplete", late)


def _containers_ready(summary: Summary) -> tuple[bool, str, str]:
    if summary.phase == "Succeeded":
        return False, "PodCompleted", ""
    if summary.phase == "Failed":
        return False, "PodFailed", ""
    late = [found["name"] for found in summary.containers if not found["ready"]]
    if late or not summary.containers:
        return False, "ContainersNotReady", _named("unready", late)
    return True, "", ""


def _named(how: str, names: Sequence[str]) -> str:
    return f"containers with {how} status: [{' '.join(names)}]"


def _is_done(status: Mapping[str, Any]) -> bool:
    return (status["state"].get("terminated") or {}).get("exitCode") == 0


def _is_over(summary: Summary) -> bool:
    return summary.phase in ("Succeeded", "Failed")


def gates(pod: Object) -> tuple[bool, str, str]:
    """Whether the conditions of others that the pod's readiness waits for are true; why not."""
    closed = []
    for kind in [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or []]:
        found = condition(pod, kind)
        if found is None:
            closed.append(f'corresponding condition of pod readiness gate "{kind}" does not exist.')
        elif found.get("status") != "True":
            closed.append(
                f'the status of pod readiness gate "{kind}" is not "True", but {found.get("status")}'
            )
    return (False, "ReadinessGatesNotReady", ", ".join(closed)) if closed else (True, "", "")


def phase_of(containers: Sequence[Mapping[str, Any]], initialized: bool) -> str:
    """Pending or Running, while the pod goes on."""
    begun = any(
        "running" in each["state"] or each.get("lastState") or "terminated" in each["state"]
        for each in containers
    )
    return "Running" if initialized and begun else "Pending"


def image_id(image: str) -> str:
    """The digest that an image's name stands for here, always the same one."""
    name = image.partition("@")[0].rpartition(":")[0] if ":" in image.rpartition("/")[2] else image
    return f"{name}@sha256:{hashlib.sha256(image.encode()).hexdigest()}"
