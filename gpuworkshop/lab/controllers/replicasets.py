"""ReplicaSets: as many pods as wanted, no more and no fewer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuworkshop.lab.api.kinds import POD, REPLICA_SET, Kind
from gpuworkshop.lab.api.object_selectors import contains
from gpuworkshop.lab.api.objects import (
    Object,
    annotations_of,
    condition,
    controller_of,
    is_deleted,
    labels_of,
    meta,
    seconds_of,
)
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.claims import claim, claimants
from gpuworkshop.lab.controllers.conditions import (
    conditions_of,
    counted,
    with_condition,
    without_condition,
    write_status,
)
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, key_of_controller, own_key
from gpuworkshop.lab.controllers.pods import (
    create_pod,
    delete_pod,
    is_active,
    is_ready,
    new_pod,
    phase_of,
    ready_since,
    unavailable_for,
)

BURST = 25  # pods made or deleted before the API server gets its turn
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


def _pod_keys(registry: Registry, pod: Object) -> Iterable[Key]:
    if controller_of(pod) is None:
        return claimants(registry, REPLICA_SET, pod)
    return key_of_controller(REPLICA_SET)(registry, pod)


class ReplicaSetController(Controller):
    """Makes and deletes the pods of ReplicaSets."""

    name = "replicaset-controller"
    watches: Mapping[Kind, Keys] = {REPLICA_SET: own_key, POD: _pod_keys}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Make or delete a burst of pods, and count them."""
        owner = registry.find(REPLICA_SET, *key)
        if owner is None:
            return None
        pods = [pod for pod in claim(registry, POD, owner) if is_active(pod)]
        failure, again = None, None
        if not is_deleted(owner):
            missing = int(owner["spec"].get("replicas", 1)) - len(pods)
            again = 0.0 if abs(missing) > BURST else None
            try:
                self._manage(registry, owner, pods, missing)
            except ApiError as error:
                failure = error
        waits = self._count(registry, owner, pods, failure)
        if failure:
            raise failure
        return again if again is not None else min(waits, default=None)

    def _manage(self, registry: Registry, owner: Object, pods: list[Object], missing: int) -> None:
        for _ in range(min(missing, BURST)):
            pod = new_pod(owner, owner["spec"]["template"])
            pods.append(create_pod(registry, owner, pod, self.name))
        if missing < 0:
            for pod in sorted(pods, key=_worth)[: min(-missing, BURST)]:
                delete_pod(registry, owner, pod, self.name)
                pods.remove(pod)

    def _count(
        self, registry: Registry, owner: Object, pods: Sequence[Object], failure: ApiError | None
    ) -> list[float]:
        """Write the status; the seconds until ready pods become available."""
        now, wanted = registry.now(), labels_of(owner["spec"]["template"])
        minimum = int(owner["spec"].get("minReadySeconds") or 0)
        waits = [wait for pod in pods if (wait := unavailable_for(pod, minimum, now)) is not None]
        status: dict[str, Any] = {"replicas": len(pods), "observedGeneration": meta(owner)["generation"]}
        status |= counted(
            fullyLabeledReplicas=sum(contains(labels_of(pod), wanted) for pod in pods),
            readyReplicas=len(waits),
            availableReplicas=waits.count(0.0),
        )
        conditions = conditions_of(owner)
        reason = "FailedCreate" if len(pods) < int(owner["spec"].get("replicas", 1)) else "FailedDelete"
        if failure and (condition(owner, "ReplicaFailure") or {}).get("reason") == reason:
            pass  # the first message stays: each later one names another pod
        elif failure:
            conditions = with_condition(conditions, "ReplicaFailure", "True", reason, failure.message, now)
        else:
            conditions = without_condition(conditions, "ReplicaFailure")
        if conditions:
            status["conditions"] = conditions
        write_status(registry, REPLICA_SET, owner, status)
        return [wait for wait in waits if wait]


def _worth(pod: Object) -> tuple[Any, ...]:
    """Order of deletion: first what is not yet bound, not running, not ready, cheap, or young."""
    restarts = sum(
        int(found.get("restartCount") or 0)
        for found in (pod.get("status") or {}).get("containerStatuses") or ()
    )
    return (
        bool(pod["spec"].get("nodeName")),
        {"Pending": 0, "Unknown": 1}.get(phase_of(pod), 2),
        is_ready(pod),
        _cost(pod),
        -ready_since(pod) if is_ready(pod) else 0.0,
        -restarts,
        -seconds_of(meta(pod)["creationTimestamp"]),
    )


def _cost(pod: Object) -> int:
    try:
        return int(annotations_of(pod).get(DELETION_COST, "0"))
    except ValueError:
        return 0
