"""What every controller of pods asks of a pod, and how it makes and deletes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.api.objects import (
    Object,
    condition,
    copy_of,
    is_deleted,
    meta,
    name_of,
    namespace_of,
    owner_reference,
    seconds_of,
    uid_of,
)
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry


def phase_of(pod: Object) -> str:
    """Pending, Running, Succeeded, Failed or Unknown."""
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_finished(pod: Object) -> bool:
    """Whether its containers have ended for good."""
    return phase_of(pod) in ("Succeeded", "Failed")


def is_active(pod: Object) -> bool:
    """Whether it counts as a replica: neither ended nor on its way out."""
    return not is_finished(pod) and not is_deleted(pod)


def is_ready(pod: Object) -> bool:
    """Whether its condition Ready is true."""
    return (condition(pod, "Ready") or {}).get("status") == "True"


def ready_since(pod: Object) -> float:
    """When it became ready, in Unix seconds; of a ready pod."""
    return seconds_of(
        (condition(pod, "Ready") or {}).get("lastTransitionTime") or meta(pod)["creationTimestamp"]
    )


def unavailable_for(pod: Object, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until a ready pod counts as available, 0 if it does; None while it is not ready."""
    if not is_ready(pod):
        return None
    return max(0.0, ready_since(pod) + min_ready_seconds - now) if min_ready_seconds else 0.0


def is_available(pod: Object, min_ready_seconds: int, now: float) -> bool:
    """Whether it has been ready for long enough."""
    return unavailable_for(pod, min_ready_seconds, now) == 0.0


def new_pod(owner: Object, template: Mapping[str, Any], name: str = "") -> Object:
    """A pod of a controller's template; without a name it gets one made from its owner's."""
    metadata = copy_of(dict(template.get("metadata") or {}))
    kept = {key: metadata[key] for key in ("labels", "annotations", "finalizers") if metadata.get(key)}
    named = {"name": name} if name else {"generateName": f"{name_of(owner)}-"}
    owned = {"namespace": namespace_of(owner), "ownerReferences": [owner_reference(owner)]}
    return {"metadata": {**named, **owned, **kept}, "spec": copy_of(dict(template["spec"]))}


def create_pod(registry: Registry, owner: Object, pod: Object, component: str) -> Object:
    """Create it, and tell so at its owner, as well as when it is refused."""
    try:
        created = registry.create(POD, pod)
    except ApiError as error:
        registry.event(owner, "Warning", "FailedCreate", f"Error creating: {error.message}", component)
        raise
    registry.event(owner, "Normal", "SuccessfulCreate", f"Created pod: {name_of(created)}", component)
    return created


def delete_pod(registry: Registry, owner: Object, pod: Object, component: str) -> None:
    """Delete it, unless another has taken its name, and tell so at its owner."""
    if registry.delete(POD, namespace_of(pod), name_of(pod), uid=uid_of(pod)) is not None:
        registry.event(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}", component)
