"""CustomResourceDefinitions: the status by which clients learn that the new kinds are served."""

from __future__ import annotations

from collections.abc import Mapping

from gpuworkshop.lab.api import custom
from gpuworkshop.lab.api.kinds import CRD, Kind
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.conditions import write_status
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, own_key


class CustomResourceController(Controller):
    """Says of each definition that it is established: the registry serves it from its creation on."""

    name = "customresourcedefinition-controller"
    watches: Mapping[Kind, Keys] = {CRD: own_key}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Write the status once for each change of the definition."""
        crd = registry.find(CRD, *key)
        if crd is None:
            return None
        wanted, live = custom.accepted(crd, registry.now()), crd.get("status") or {}
        if any(live.get(field) != wanted[field] for field in ("acceptedNames", "storedVersions")):
            write_status(registry, CRD, crd, wanted)
        return None
