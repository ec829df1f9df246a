"""A Job's pods: made for it, counted once when they end, and in Indexed mode each for its index."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.api.objects import (
    Object,
    annotations_of,
    condition,
    is_deleted,
    meta,
    name_of,
    namespace_of,
    seconds_of,
    uid_of,
)
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.pods import is_finished, new_pod, phase_of

# A pod of a Job stays until the Job has counted it, whoever deletes it.
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
_RUN = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10}))?")
# How often an index has failed before the pod that is annotated so, and how often that was ignored.
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED = "batch.kubernetes.io/job-index-ignored-failure-count"


def new_job_pod(job: Object, index: int | None) -> Object:
    """The pod of a Job; of that index in Indexed mode."""
    pod = new_pod(job, job["spec"]["template"])
    metadata = meta(pod)
    metadata["finalizers"] = [*metadata.get("finalizers", ()), TRACKING]
    uid, name = uid_of(job), name_of(job)
    labels = {"controller-uid": uid, "job-name": name}
    labels |= {f"batch.kubernetes.io/{key}": value for key, value in labels.items()}
    metadata.setdefault("labels", {}).update(labels)
    if index is not None:
        metadata["generateName"] = f"{name}-{index}-"
        metadata.setdefault("annotations", {})[INDEX] = str(index)
        metadata["labels"][INDEX] = str(index)
        pod["spec"]["hostname"] = f"{name}-{index}"
        _tell_index(pod["spec"])
    return pod


def _tell_index(spec: dict[str, Any]) -> None:
    field = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    for container in [*(spec.get("initContainers") or ()), *spec["containers"]]:
        container.setdefault("env", []).append({"name": "JOB_COMPLETION_INDEX", "valueFrom": field})


def is_tracked(pod: Object) -> bool:
    """Whether it has not been counted yet."""
    return TRACKING in (meta(pod).get("finalizers") or ())


def has_failed(pod: Object) -> bool:
    """Whether it counts as a failure: it failed, or it was deleted before it had succeeded."""
    return phase_of(pod) == "Failed" or (is_deleted(pod) and phase_of(pod) != "Succeeded")


def is_terminating(pod: Object) -> bool:
    """Whether it was deleted, and its containers are still to end."""
    return is_deleted(pod) and not is_finished(pod) and bool(meta(pod).get("deletionGracePeriodSeconds"))


def restarts(pod: Object) -> int:
    """How often its containers were started again."""
    status = pod.get("status") or {}
    found = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return sum(int(each.get("restartCount") or 0) for each in found)


def noted(pod: Object, annotation: str) -> int:
    """The number in one of the two annotations above."""
    text = annotations_of(pod).get(annotation, "")
    return int(text) if text.isdecimal() else 0


def let_go(registry: Registry, pod: Object) -> None:
    """Take the finalizer off a pod that has been counted."""

    def change(live: Object) -> None:
        left = [found for found in meta(live).get("finalizers") or () if found != TRACKING]
        meta(live).pop("finalizers", None)
        if left:
            meta(live)["finalizers"] = left

    registry.modify(POD, namespace_of(pod), name_of(pod), change)


def index_of_pod(pod: Object) -> int | None:
    """Its completion index."""
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdecimal() else None


def ended_at(pod: Object, now: float) -> float:
    """When its last container ended, or it was deleted."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    ends = [((found.get("state") or {}).get("terminated") or {}).get("finishedAt") for found in statuses]
    if found := [seconds_of(end) for end in ends if end]:
        return max(found)
    changed = (condition(pod, "Ready") or {}).get("lastTransitionTime")
    return seconds_of(changed) if changed else now


def parsed(text: str, among: range) -> set[int]:
    """The indexes in a text such as "0-2,5" that are `among` those; what is none is left out."""
    found: set[int] = set()
    for part in text.split(","):
        if run := _RUN.fullmatch(part):
            first, last = int(run[1]), int(run[2] or run[1])
            found |= set(range(max(first, among.start), min(last + 1, among.stop)))
    return found


def formatted(indexes: Iterable[int]) -> str:
    """The indexes as "0-2,5"."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(_run(run) for run in runs)


def _run(run: list[int]) -> str:
    if len(run) == 1:
        return str(run[0])
    return f"{run[0]}{',' if len(run) == 2 else '-'}{run[-1]}"
