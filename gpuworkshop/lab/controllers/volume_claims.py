"""PersistentVolumeClaims: the lab has no storage, says so at each, and keeps pods that want one waiting."""

from __future__ import annotations

from collections.abc import Mapping

from gpuworkshop.lab.api.kinds import PERSISTENT_VOLUME_CLAIM, Kind
from gpuworkshop.lab.api.objects import Object, is_deleted, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, own_key

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
NO_STORAGE = (
    "the lab has no storage: this claim stays Pending, and so do pods that use it; "
    "rehearse with an emptyDir instead"
)


class VolumeClaimController(Controller):
    """Tells at a new claim why nothing comes of it."""

    name = "gpuworkshop-lab"
    watches: Mapping[Kind, Keys] = {PERSISTENT_VOLUME_CLAIM: own_key}

    def __init__(self) -> None:
        self._told: set[Key] = set()

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Tell it once for each claim."""
        claim = registry.find(PERSISTENT_VOLUME_CLAIM, *key)
        if claim is None:
            self._told.discard(key)
        elif not is_bound(claim) and key not in self._told:
            self._told.add(key)
            registry.event(claim, "Warning", "NoStorage", NO_STORAGE, self.name)
        return None


def is_bound(claim: Object) -> bool:
    """Whether a claim has its volume."""
    return (claim.get("status") or {}).get("phase") == "Bound"


def missing_claim(registry: Registry, pod: Object) -> str:
    """Why the scheduler cannot place a pod for want of a claim, in its words; "" if it can."""
    unbound = False
    for volume in pod["spec"].get("volumes") or ():
        if source := volume.get("persistentVolumeClaim"):
            name, missing = source["claimName"], 'persistentvolumeclaim "{}" not found'
        elif volume.get("ephemeral"):
            name = f"{name_of(pod)}-{volume['name']}"
            missing = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "{}"'
        else:
            continue
        claim = registry.find(PERSISTENT_VOLUME_CLAIM, namespace_of(pod), name)
        if claim is None:
            return missing.format(name)
        if is_deleted(claim):
            return f'persistentvolumeclaim "{name}" is being deleted'
        unbound = unbound or not is_bound(claim)
    return UNBOUND if unbound else ""
