"""Deployments: one ReplicaSet for each template, and the way from the last one to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpuworkshop.lab.api.kinds import DEPLOYMENT, POD, REPLICA_SET, Kind
from gpuworkshop.lab.api.objects import (
    Object,
    annotations_of,
    controller_of,
    is_deleted,
    meta,
    name_of,
    namespace_of,
)
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import deployment_status, revisions, rollout
from gpuworkshop.lab.controllers.claims import claim, claimants
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, key_of_controller, own_key
from gpuworkshop.lab.controllers.pods import is_finished


def _replica_set_keys(registry: Registry, replica_set: Object) -> Iterable[Key]:
    if controller_of(replica_set) is None:
        return claimants(registry, DEPLOYMENT, replica_set)
    return key_of_controller(DEPLOYMENT)(registry, replica_set)


def _pod_keys(registry: Registry, pod: Object) -> Iterable[Key]:
    """A Deployment that recreates waits for its old pods to be gone."""
    reference = controller_of(pod)
    if reference is None or not (is_deleted(pod) or is_finished(pod)):
        return
    replica_set = registry.find(REPLICA_SET, namespace_of(pod), reference["name"])
    if replica_set is not None:
        yield from key_of_controller(DEPLOYMENT)(registry, replica_set)


class DeploymentController(Controller):
    """Rolls Deployments out."""

    name = "deployment-controller"
    watches: Mapping[Kind, Keys] = {DEPLOYMENT: own_key, REPLICA_SET: _replica_set_keys, POD: _pod_keys}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """One step of the rollout, and the status."""
        found = registry.find(DEPLOYMENT, *key)
        if found is None or is_deleted(found):
            return None
        deployment_status.note_pause(registry, found)
        step = _Step(registry, registry.get(DEPLOYMENT, *key), claim(registry, REPLICA_SET, found))
        step.take()
        deployment = registry.find(DEPLOYMENT, *key) or found
        replica_sets = index_of(registry).controlled(REPLICA_SET, deployment)
        new = revisions.newest(deployment, replica_sets)
        old = [replica_set for replica_set in replica_sets if replica_set is not new]
        left = deployment_status.write(registry, deployment, new, old)
        if deployment_status.is_complete(deployment, (registry.find(DEPLOYMENT, *key) or found)["status"]):
            revisions.prune(registry, deployment, old)
        return left


@dataclass
class _Step:
    """What is done for one Deployment in one look at it."""

    registry: Registry
    deployment: Object
    replica_sets: list[Object]

    def __post_init__(self) -> None:
        self.new = revisions.newest(self.deployment, self.replica_sets)
        self.old = [replica_set for replica_set in self.replica_sets if replica_set is not self.new]
        self.bounds = rollout.bounds_of(self.deployment)
        self.strategy = (self.deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate")

    def take(self) -> None:
        paused = bool(self.deployment["spec"].get("paused"))
        if self.new is not None:
            self.new = revisions.renumber(self.registry, self.deployment, self.new, self.old)
        if paused or self._is_scaling():
            self._follow_scale(paused)
        elif self.strategy == "Recreate":
            self._recreate()
        else:
            self._roll()

    def _is_scaling(self) -> bool:
        """Whether `spec.replicas` has changed since the replica sets were last sized."""
        desired = str(self.bounds.replicas)
        active = [rs for rs in self.replica_sets if rollout.wanted(rs)]
        return any(annotations_of(rs).get(revisions.DESIRED, desired) != desired for rs in active)

    def _follow_scale(self, paused: bool) -> None:
        active = [rs for rs in self._everything() if rollout.wanted(rs)]
        if len(active) <= 1:
            only = active[0] if active else self.new
            if only is not None:
                self._scale(only, self.bounds.replicas)
            return
        done = self.new is not None and rollout.status_total([self.new], "availableReplicas")
        if self.new is not None and not paused and done == rollout.wanted(self.new) == self.bounds.replicas:
            self._scale_all({**{name_of(rs): 0 for rs in self.old}, name_of(self.new): done})
        elif self.strategy == "Recreate":
            self._recreate()
        else:
            self._scale_all(rollout.proportional(self.bounds, active))

    def _recreate(self) -> None:
        self._scale_all({name_of(rs): 0 for rs in self.old if rollout.wanted(rs)})
        pods = (pod for rs in self.old for pod in index_of(self.registry).controlled(POD, rs))
        if not any(not is_finished(pod) for pod in pods):
            self._ensure_new(self.bounds.replicas)

    def _roll(self) -> None:
        size = rollout.size_of_new(self.bounds, self.new, self.replica_sets)
        if self._ensure_new(size) or self.new is None:
            return
        self._scale_all(rollout.sizes_of_old(self.bounds, self.new, self.old))

    def _ensure_new(self, size: int) -> bool:
        """Have the newest ReplicaSet with that many replicas; whether something was done."""
        if self.new is not None:
            return self._scale(self.new, size)
        created = revisions.create(self.registry, self.deployment, self.old, size, self.bounds.annotations)
        if created is not None:
            name = name_of(created)
            deployment_status.set_progressing(
                self.registry,
                self.deployment,
                "True",
                "NewReplicaSetCreated",
                f'Created new replica set "{name}"',
            )
            if size:
                self._tell(f"Scaled up replica set {name} from 0 to {size}")
        return True

    def _scale_all(self, sizes: Mapping[str, int]) -> None:
        for replica_set in self._everything():
            if name_of(replica_set) in sizes:
                self._scale(replica_set, sizes[name_of(replica_set)])

    def _everything(self) -> Sequence[Object]:
        return [*([self.new] if self.new else []), *self.old]

    def _scale(self, replica_set: Object, size: int) -> bool:
        """Have a ReplicaSet want that many; whether that is another number than before."""
        before = rollout.wanted(replica_set)

        def change(live: Object) -> None:
            live["spec"]["replicas"] = size
            meta(live).setdefault("annotations", {}).update(self.bounds.annotations)

        self.registry.modify(REPLICA_SET, namespace_of(replica_set), name_of(replica_set), change)
        if size == before:
            return False
        way = "up" if size > before else "down"
        self._tell(f"Scaled {way} replica set {name_of(replica_set)} from {before} to {size}")
        return True

    def _tell(self, message: str) -> None:
        self.registry.event(
            self.deployment, "Normal", "ScalingReplicaSet", message, DeploymentController.name
        )
