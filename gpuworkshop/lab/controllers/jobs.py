"""Jobs: pods that run until enough of them have succeeded, or too many have failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuworkshop.lab.api.kinds import JOB, POD, Kind
from gpuworkshop.lab.api.objects import (
    Object,
    condition,
    controller_of,
    is_deleted,
    name_of,
    namespace_of,
    seconds_of,
    timestamp,
    uid_of,
)
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import job_pods
from gpuworkshop.lab.controllers.conditions import conditions_of, counted, with_condition, write_status
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, key_of_controller, own_key
from gpuworkshop.lab.controllers.pods import create_pod, delete_pod, is_active, is_ready, phase_of

FIRST_BACK_OFF_S, LAST_BACK_OFF_S = 10.0, 600.0
FAILURES = {
    "BackoffLimitExceeded": "Job has reached the specified backoff limit",
    "DeadlineExceeded": "Job was active longer than specified deadline",
}


class JobController(Controller):
    """Runs Jobs to their end, and deletes them some time after if they say so."""

    name = "job-controller"
    watches: Mapping[Kind, Keys] = {JOB: own_key, POD: key_of_controller(JOB)}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Count what has ended, make or delete pods, and write the status."""
        job = registry.find(JOB, *key)
        if job is None or is_deleted(job):
            self._release(registry, key)
            return None
        if _is_ended(job):
            return self._expire(registry, job)
        work = _Work(registry, job)
        work.count()
        work.decide()
        work.write()
        return work.again()

    def _release(self, registry: Registry, key: Key) -> None:
        """Let go of the pods of a Job that is gone or going."""
        for pod in index_of(registry).within(POD, key[0]):
            reference = controller_of(pod) or {}
            if (reference.get("kind"), reference.get("name")) == (JOB.kind, key[1]) and job_pods.is_tracked(
                pod
            ):
                job_pods.let_go(registry, pod)

    def _expire(self, registry: Registry, job: Object) -> float | None:
        for pod in index_of(registry).controlled(POD, job):
            if job_pods.is_tracked(pod) and not is_active(pod):
                job_pods.let_go(registry, pod)
        seconds = job["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return None
        ended = max(seconds_of(found["lastTransitionTime"]) for found in conditions_of(job))
        left = ended + float(seconds) - registry.now()
        if left > 0:
            return left
        registry.delete(JOB, namespace_of(job), name_of(job), uid=uid_of(job))
        return None


def _is_ended(job: Object) -> bool:
    return any((condition(job, kind) or {}).get("status") == "True" for kind in ("Complete", "Failed"))


@dataclass
class _Work:
    """One look at a Job that has not ended."""

    registry: Registry
    job: Object
    active: list[Object] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        spec, status = self.job["spec"], self.job.get("status") or {}
        self.now = self.registry.now()
        self.pods = index_of(self.registry).controlled(POD, self.job)
        self.succeeded = int(status.get("succeeded") or 0)
        self.failed = int(status.get("failed") or 0)
        self.conditions = conditions_of(self.job)
        self.start: str | None = status.get("startTime")
        self.end: str | None = None
        self.suspended = bool(spec.get("suspend"))
        self.parallelism = int(spec.get("parallelism", 1))
        self.completions: int | None = spec.get("completions")
        self.indexed = spec.get("completionMode") == "Indexed"
        self.done = job_pods.parsed(status.get("completedIndexes") or "")
        self.counted: list[Object] = []

    def count(self) -> None:
        """Count the pods that have ended since the last look."""
        for pod in self.pods:
            if is_active(pod):
                self.active.append(pod)
            elif job_pods.is_tracked(pod):
                self.counted.append(pod)
                if job_pods.has_failed(pod):
                    self.failed += 1
                elif self.indexed:
                    self.done |= {index for index in [job_pods.index_of_pod(pod)] if index is not None}
                else:
                    self.succeeded += 1
        if self.indexed:
            self.succeeded = len(self.done)

    def decide(self) -> None:
        """What the counts mean: the end, a failure, a pause, or more pods."""
        started, limit = self.start, self.job["spec"].get("activeDeadlineSeconds")
        left = None
        if started and limit is not None and not self.suspended:
            left = seconds_of(started) + float(limit) - self.now
        if self.failed > int(self.job["spec"].get("backoffLimit", 6)):
            self._fail("BackoffLimitExceeded")
        elif left is not None and left <= 0:
            self._fail("DeadlineExceeded")
        elif self._is_complete():
            self._complete()
        elif self.suspended:
            self._suspend()
        else:
            self._resume()
            self.waits += [left] if left is not None else self._deadline_from_now(limit)
            self._manage()

    def _deadline_from_now(self, limit: Any) -> list[float]:
        return [float(limit)] if limit is not None else []

    def _is_complete(self) -> bool:
        if self.completions is None:  # a work queue: done when one has succeeded and none runs
            return self.succeeded > 0 and not self.active
        return self.succeeded >= self.completions

    def _manage(self) -> None:
        surplus = len(self.active) - self._wanted()
        if surplus > 0:
            by_age = sorted(self.active, key=lambda pod: (is_ready(pod), phase_of(pod) == "Running"))
            self._delete(by_age[:surplus])
            return
        if (wait := self._back_off()) > 0 and surplus < 0:
            self.waits.append(wait)
            return
        taken = {job_pods.index_of_pod(pod) for pod in self.active} | self.done
        free = (index for index in range(self.completions or 0) if index not in taken)
        for _ in range(-surplus):
            pod = job_pods.new_job_pod(self.job, next(free, None) if self.indexed else None)
            self.active.append(create_pod(self.registry, self.job, pod, JobController.name))

    def _wanted(self) -> int:
        if self.completions is None:
            return self.parallelism if not self.succeeded else len(self.active)
        return max(0, min(self.parallelism, self.completions - self.succeeded))

    def _back_off(self) -> float:
        """Seconds to wait before the next pod after failures."""
        ends = [job_pods.ended_at(pod, self.now) for pod in self.pods if job_pods.has_failed(pod)]
        if not ends or not self.failed:
            return 0.0
        pause = min(FIRST_BACK_OFF_S * 2.0 ** min(self.failed - 1, 10), LAST_BACK_OFF_S)
        return max(ends) + pause - self.now

    def _complete(self) -> None:
        words = ("CompletionsReached", "Reached expected number of succeeded pods")
        self._set("SuccessCriteriaMet", *words)
        self._set("Complete", *words)
        self._delete(self.active)
        self.end = timestamp(self.now)
        self.registry.event(self.job, "Normal", "Completed", "Job completed", JobController.name)

    def _fail(self, reason: str) -> None:
        self._set("FailureTarget", reason, FAILURES[reason])
        self._set("Failed", reason, FAILURES[reason])
        self.failed += len(self.active)
        self._delete(self.active)
        self.registry.event(self.job, "Warning", reason, FAILURES[reason], JobController.name)

    def _suspend(self) -> None:
        if (condition(self.job, "Suspended") or {}).get("status") != "True":
            self._set("Suspended", "JobSuspended", "Job suspended")
            self.registry.event(self.job, "Normal", "Suspended", "Job suspended", JobController.name)
        self.start = None
        self._delete(self.active)

    def _resume(self) -> None:
        if (condition(self.job, "Suspended") or {}).get("status") == "True":
            self._set("Suspended", "JobResumed", "Job resumed", status="False")
            self.registry.event(self.job, "Normal", "Resumed", "Job resumed", JobController.name)
        self.start = self.start or timestamp(self.now)

    def _delete(self, pods: list[Object]) -> None:
        """Delete pods that run; they are not counted as failures of their own."""
        for pod in list(pods):
            job_pods.let_go(self.registry, pod)
            delete_pod(self.registry, self.job, pod, JobController.name)
            self.active.remove(pod)

    def write(self) -> None:
        """Write the status, and let go of the pods that it now counts."""
        status: dict[str, Any] = counted(
            active=len(self.active), succeeded=self.succeeded, failed=self.failed
        )
        status["ready"] = sum(is_ready(pod) for pod in self.active)
        status["uncountedTerminatedPods"] = {}
        status |= {"startTime": self.start} if self.start else {}
        status |= {"completionTime": self.end} if self.end else {}
        status |= {"conditions": self.conditions} if self.conditions else {}
        status |= {"completedIndexes": job_pods.formatted(self.done)} if self.done else {}
        write_status(self.registry, JOB, self.job, status)
        for pod in self.counted:
            job_pods.let_go(self.registry, pod)

    def again(self) -> float | None:
        """Seconds until a deadline or the end of a back-off."""
        return min(self.waits, default=None)

    def _set(self, kind: str, reason: str, message: str, status: str = "True") -> None:
        self.conditions = with_condition(
            self.conditions, kind, status, reason, message, self.now, lastProbeTime=timestamp(self.now)
        )
