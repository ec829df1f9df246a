"""StatefulSets: pods of stable names, made, updated and deleted in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuworkshop.lab.api.kinds import CONTROLLER_REVISION, POD, STATEFUL_SET, Kind
from gpuworkshop.lab.api.objects import Object, controller_of, is_deleted, meta, name_of, uid_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import history
from gpuworkshop.lab.controllers.claims import claim, claimants
from gpuworkshop.lab.controllers.conditions import counted, write_status
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, key_of_controller, own_key
from gpuworkshop.lab.controllers.pods import create_pod, delete_pod, is_finished, is_ready, unavailable_for
from gpuworkshop.lab.controllers.stateful_pods import (
    claim_names,
    new_stateful_pod,
    ordinal_of,
    ordinals,
    revision_name,
)

BURST = 25  # pods made before the API server gets its turn


def _pod_keys(registry: Registry, pod: Object) -> Iterable[Key]:
    if controller_of(pod) is None:
        return claimants(registry, STATEFUL_SET, pod)
    return key_of_controller(STATEFUL_SET)(registry, pod)


class StatefulSetController(Controller):
    """Keeps the pods of StatefulSets."""

    name = "statefulset-controller"
    watches: Mapping[Kind, Keys] = {
        STATEFUL_SET: own_key,
        POD: _pod_keys,
        CONTROLLER_REVISION: key_of_controller(STATEFUL_SET),
    }

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Do what may be done now, in order, and count."""
        owner = registry.find(STATEFUL_SET, *key)
        if owner is None or is_deleted(owner):
            return None
        self._warn_of_claims(registry, owner)
        update = history.ensure_current(registry, owner)
        current = self._current(registry, owner, update)
        first = _Look(registry, owner, current, update)
        first.act()
        look = _Look(registry, owner, current, update)
        wait = look.count() if first.left else 0.0
        in_use = {revision_name(pod) for pod in look.pods.values()} | {name_of(current), name_of(update)}
        history.prune(registry, owner, in_use)
        return wait

    def _current(self, registry: Registry, owner: Object, update: Object) -> Object:
        """The revision from which an update comes: the one noted in the status."""
        noted = (owner.get("status") or {}).get("currentRevision")
        found = registry.find(CONTROLLER_REVISION, meta(owner)["namespace"], noted) if noted else None
        return found or update

    def _warn_of_claims(self, registry: Registry, owner: Object) -> None:
        claims = claim_names(owner)
        if not claims or uid_of(owner) in self._warned:
            return
        self._warned.add(uid_of(owner))
        message = f"the lab has no storage: {', '.join(claims)} is an empty folder that is lost with its pod"
        registry.event(owner, "Warning", "VolumeClaimsNotServed", message, self.name)


@dataclass
class _Look:
    registry: Registry
    owner: Object
    current: Object
    update: Object
    left: int = BURST  # of the pods that it may make

    def __post_init__(self) -> None:
        spec = self.owner["spec"]
        claimed = claim(self.registry, POD, self.owner)
        self.pods = {ordinal: pod for pod in claimed if (ordinal := ordinal_of(self.owner, pod)) is not None}
        self.ordinals = ordinals(self.owner)
        self.in_order = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
        self.minimum = int(spec.get("minReadySeconds") or 0)
        self.now = self.registry.now()
        strategy = spec.get("updateStrategy") or {}
        self.rolling = strategy.get("type", "RollingUpdate") == "RollingUpdate"
        self.partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)

    def act(self) -> None:
        """Make pods upwards, then delete those beyond, then update, each downwards; wait where order asks."""
        for ordinal in self.ordinals:
            if not self._ensure(ordinal) and (self.in_order or not self.left):
                return
        beyond = sorted((ordinal for ordinal in self.pods if ordinal not in self.ordinals), reverse=True)
        for ordinal in beyond:
            self._delete(self.pods[ordinal])
            if self.in_order:
                return
        if beyond or not self.rolling:
            return
        for ordinal in reversed(self.ordinals):
            if ordinal < self.partition:
                return
            pod = self.pods.get(ordinal)
            if pod is not None and revision_name(pod) != name_of(self.update):
                self._delete(pod)
                return
            if pod is None or not self._is_healthy(pod):
                return

    def _ensure(self, ordinal: int) -> bool:
        """Whether the ordinal's pod is there and healthy; it is made if it is missing."""
        pod = self.pods.get(ordinal)
        if pod is None:
            old = not self.rolling or ordinal < self.partition
            revision = self.current if old else self.update
            pod = new_stateful_pod(self.owner, ordinal, revision)
            create_pod(self.registry, self.owner, pod, StatefulSetController.name)
            self.left -= 1
            return False
        if is_finished(pod):
            self._delete(pod)
            return False
        # A broken pod of an old template must not stop its own update.
        outdated = self.rolling and ordinal >= self.partition and revision_name(pod) != name_of(self.update)
        return self._is_healthy(pod) or (outdated and not is_deleted(pod))

    def count(self) -> float | None:
        """Write the status; the seconds until the next ready pod becomes available."""
        pods = list(self.pods.values())
        waits = [w for pod in pods if (w := unavailable_for(pod, self.minimum, self.now)) is not None]
        updated = sum(revision_name(pod) == name_of(self.update) for pod in pods)
        current, wanted = name_of(self.current), len(self.ordinals)
        if updated == wanted == len(pods) == sum(map(is_ready, pods)):
            current = name_of(self.update)
        status: dict[str, Any] = {
            "observedGeneration": meta(self.owner)["generation"],
            "replicas": len(pods),
            "availableReplicas": waits.count(0.0),
            "currentRevision": current,
            "updateRevision": name_of(self.update),
            "collisionCount": 0,
        }
        status |= counted(
            readyReplicas=len(waits),
            currentReplicas=sum(revision_name(pod) == current for pod in pods),
            updatedReplicas=updated,
        )
        write_status(self.registry, STATEFUL_SET, self.owner, status)
        return min((wait for wait in waits if wait), default=None)

    def _is_healthy(self, pod: Object) -> bool:
        return not is_deleted(pod) and unavailable_for(pod, self.minimum, self.now) == 0.0

    def _delete(self, pod: Object) -> None:
        if not is_deleted(pod):
            delete_pod(self.registry, self.owner, pod, StatefulSetController.name)
