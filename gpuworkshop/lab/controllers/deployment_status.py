"""What a Deployment says of itself: its counts, and the conditions Available and Progressing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuworkshop.lab.api.kinds import DEPLOYMENT
from gpuworkshop.lab.api.objects import Object, condition, meta, name_of, seconds_of, timestamp
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.conditions import (
    Conditions,
    conditions_of,
    counted,
    with_condition,
    without_condition,
    write_status,
)
from gpuworkshop.lab.controllers.rollout import bounds_of, status_total, total, wanted

COMPLETE, PROGRESS, TIMED_OUT = "NewReplicaSetAvailable", "ReplicaSetUpdated", "ProgressDeadlineExceeded"
NO_DEADLINE = 2_147_483_647


def write(registry: Registry, deployment: Object, new: Object | None, old: Sequence[Object]) -> float | None:
    """Write the status; the seconds until the rollout's deadline, where one is running."""
    now = registry.now()
    status = _counts(deployment, new, old)
    conditions = _available(deployment, status, conditions_of(deployment), now)
    deadline = deployment["spec"].get("progressDeadlineSeconds")
    left = None
    if deadline is not None and deadline != NO_DEADLINE and not deployment["spec"].get("paused"):
        conditions = _progressing(deployment, new, status, conditions, now)
        left = _left(conditions, float(deadline), now)
    status["conditions"] = _failure(conditions, [*([new] if new else []), *old])
    write_status(registry, DEPLOYMENT, deployment, status)
    return left


def is_complete(deployment: Object, status: Mapping[str, Any]) -> bool:
    """Whether all replicas that there are are of today's template, and available."""
    counts = (status.get(field, 0) for field in ("updatedReplicas", "replicas", "availableReplicas"))
    return all(count == wanted(deployment) for count in counts)


def set_progressing(registry: Registry, deployment: Object, status: str, reason: str, message: str) -> None:
    """Write the condition Progressing at a turn of the rollout: a new ReplicaSet, a pause, a resumption."""
    now = registry.now()

    def change(live: Object) -> None:
        live.setdefault("status", {})["conditions"] = _with(
            conditions_of(live), "Progressing", status, reason, message, now
        )

    registry.modify(DEPLOYMENT, meta(deployment)["namespace"], name_of(deployment), change, "status")


def note_pause(registry: Registry, deployment: Object) -> None:
    """Say once that the Deployment is paused, and once that it is resumed: its deadline stands still."""
    if deployment["spec"].get("progressDeadlineSeconds") is None:
        return
    found = condition(deployment, "Progressing") or {}
    if found.get("reason") == TIMED_OUT:
        return
    paused, was = bool(deployment["spec"].get("paused")), found.get("reason") == "DeploymentPaused"
    if paused and not was:
        set_progressing(registry, deployment, "Unknown", "DeploymentPaused", "Deployment is paused")
    elif was and not paused:
        set_progressing(registry, deployment, "Unknown", "DeploymentResumed", "Deployment is resumed")


def _counts(deployment: Object, new: Object | None, old: Sequence[Object]) -> dict[str, Any]:
    newest = [new] if new else []
    everything = [*newest, *old]
    available = status_total(everything, "availableReplicas")
    status: dict[str, Any] = {"observedGeneration": meta(deployment)["generation"]}
    status |= counted(
        replicas=status_total(everything, "replicas"),
        updatedReplicas=status_total(newest, "replicas"),
        readyReplicas=status_total(everything, "readyReplicas"),
        availableReplicas=available,
        unavailableReplicas=max(0, total(everything) - available),
        collisionCount=int((deployment.get("status") or {}).get("collisionCount") or 0),
    )
    return status


def _available(
    deployment: Object, status: Mapping[str, Any], conditions: Conditions, now: float
) -> Conditions:
    if status.get("availableReplicas", 0) >= bounds_of(deployment).fewest:
        words = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        words = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return _with(conditions, "Available", *words, now)


def _progressing(
    deployment: Object, new: Object | None, status: Mapping[str, Any], conditions: Conditions, now: float
) -> Conditions:
    current = next((found for found in conditions if found["type"] == "Progressing"), None)
    done = current is not None and current.get("reason") == COMPLETE
    if done and status.get("replicas", 0) == status.get("updatedReplicas", 0):
        return conditions
    subject = f'ReplicaSet "{name_of(new)}"' if new else f'Deployment "{name_of(deployment)}"'
    if is_complete(deployment, status):
        words = ("True", COMPLETE, f"{subject} has successfully progressed.")
        return _with(conditions, "Progressing", *words, now)
    if _advanced(deployment.get("status") or {}, status):
        words = ("True", PROGRESS, f"{subject} is progressing.")
        return _with(conditions, "Progressing", *words, now, again=True)
    if current is None or done:
        return conditions
    left = _left(conditions, float(deployment["spec"]["progressDeadlineSeconds"]), now)
    if left is not None and left <= 0:
        words = ("False", TIMED_OUT, f"{subject} has timed out progressing.")
        return _with(conditions, "Progressing", *words, now)
    return conditions


def _advanced(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    def grown(field: str) -> bool:
        return bool(after.get(field, 0) > before.get(field, 0))

    old_before = before.get("replicas", 0) - before.get("updatedReplicas", 0)
    old_after = after.get("replicas", 0) - after.get("updatedReplicas", 0)
    return old_after < old_before or any(
        grown(field) for field in ("updatedReplicas", "readyReplicas", "availableReplicas")
    )


def _left(conditions: Conditions, deadline: float, now: float) -> float | None:
    """Seconds until a rollout that makes no progress is given up; None where none is running."""
    found = next((found for found in conditions if found["type"] == "Progressing"), None)
    if found is None or found.get("reason") in (COMPLETE, TIMED_OUT, "DeploymentPaused"):
        return None
    return seconds_of(found.get("lastUpdateTime") or found["lastTransitionTime"]) + deadline - now


def _failure(conditions: Conditions, replica_sets: Sequence[Object]) -> Conditions:
    found = next((c for rs in replica_sets if (c := condition(rs, "ReplicaFailure"))), None)
    if found is None:
        return without_condition(conditions, "ReplicaFailure")
    old = next((dict(c) for c in conditions if c["type"] == "ReplicaFailure"), {})
    copied = {**found, "lastUpdateTime": found["lastTransitionTime"]}
    return [*without_condition(conditions, "ReplicaFailure"), old | copied]


def _with(
    conditions: Conditions, kind: str, status: str, reason: str, message: str, now: float, again: bool = False
) -> Conditions:
    """The condition set; its update is as old as its words, or new at each progress."""
    old = next((found for found in conditions if found["type"] == kind), {})
    same = not again and (old.get("status"), old.get("reason")) == (status, reason)
    updated = old.get("lastUpdateTime") if same else None
    return with_condition(
        conditions, kind, status, reason, message, now, lastUpdateTime=updated or timestamp(now)
    )
