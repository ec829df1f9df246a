"""One look at a Job that has not ended: what its pods have come to, and what follows from that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gpuworkshop.lab.api.kinds import JOB, POD
from gpuworkshop.lab.api.objects import Object, condition, seconds_of, timestamp
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import job_failures, job_pods
from gpuworkshop.lab.controllers.conditions import conditions_of, counted, with_condition, write_status
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.pods import create_pod, delete_pod, is_active, is_ready, phase_of

COMPONENT = "job-controller"
BURST = 25  # pods made before the API server gets its turn
FAILURES = {
    "BackoffLimitExceeded": "Job has reached the specified backoff limit",
    "DeadlineExceeded": "Job was active longer than specified deadline",
    "MaxFailedIndexesExceeded": "Job has exceeded the specified maximal number of failed indexes",
    "FailedIndexes": "Job has failed indexes",
}


@dataclass
class Work:
    """The Job's status as it is to be. `count`, then `decide`, then `write`."""

    registry: Registry
    job: Object
    active: list[Object] = field(default_factory=list)
    counted: list[Object] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        spec, status = self.job["spec"], self.job.get("status") or {}
        self.now = self.registry.now()
        self.pods = index_of(self.registry).controlled(POD, self.job)
        self.succeeded = int(status.get("succeeded") or 0)
        self.failed = int(status.get("failed") or 0)
        self.terminating = 0
        self.conditions = conditions_of(self.job)
        self.start: str | None = status.get("startTime")
        self.end: str | None = None
        self.suspended = bool(spec.get("suspend"))
        self.parallelism = int(spec.get("parallelism", 1))
        self.completions: int | None = spec.get("completions")
        self.indexed = spec.get("completionMode") == "Indexed"
        self.per_index = self.indexed and spec.get("backoffLimitPerIndex") is not None
        self.replaces_failed_only = spec.get("podReplacementPolicy") == "Failed"
        indexes = range(self.completions or 0) if self.indexed else range(0)
        self.done = job_pods.parsed(status.get("completedIndexes") or "", indexes)
        self.failed_indexes = job_pods.parsed(status.get("failedIndexes") or "", indexes)
        self.fatal = ""

    def count(self) -> None:
        """Count the pods that have ended since the last look."""
        for pod in self.pods:
            if is_active(pod):
                self.active.append(pod)
                continue
            terminating = job_pods.is_terminating(pod)
            self.terminating += terminating
            if job_pods.is_tracked(pod) and not (terminating and self.replaces_failed_only):
                self.counted.append(pod)
                self._count_ended(pod)
        if self.indexed:
            self.done -= self.failed_indexes
            self.succeeded = len(self.done)

    def _count_ended(self, pod: Object) -> None:
        index = {found for found in [job_pods.index_of_pod(pod)] if found is not None}
        if not job_pods.has_failed(pod):
            self.succeeded += 1
            self.done |= index
            return
        verdict = job_failures.verdict(self.job, pod)
        if verdict.action == job_failures.FAIL_JOB:
            self.fatal = self.fatal or verdict.why
        self.failed += verdict.action != job_failures.IGNORE
        if self.per_index and job_failures.fails_index(self.job, pod):
            self.failed_indexes |= index

    def decide(self) -> None:
        """What the counts mean: the end, a failure, a pause, or more pods."""
        limit = self.job["spec"].get("activeDeadlineSeconds")
        left = None
        if self.start and limit is not None and not self.suspended:
            left = seconds_of(self.start) + float(limit) - self.now
        if self.fatal:
            self._fail("PodFailurePolicy", self.fatal)
        elif reason := self._failure(left):
            self._fail(reason, FAILURES[reason])
        elif self._is_complete():
            self._complete()
        elif self.suspended:
            self._suspend()
        else:
            self._resume()
            if limit is not None:
                self.waits.append(float(limit) if left is None else left)
            self._manage()

    def _failure(self, left: float | None) -> str:
        """The reason for which the Job fails; "" if it does not. `left` are seconds until its deadline."""
        spec = self.job["spec"]
        if self.failed > int(spec.get("backoffLimit", 6)):
            return "BackoffLimitExceeded"
        if job_failures.restarted_too_often(self.job, self.active):
            return "BackoffLimitExceeded"
        if left is not None and left <= 0:
            return "DeadlineExceeded"
        most, failed = spec.get("maxFailedIndexes"), len(self.failed_indexes)
        if most is not None and failed > int(most):
            return "MaxFailedIndexesExceeded"
        return "FailedIndexes" if failed and failed + self.succeeded >= (self.completions or 0) else ""

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
        if self.replaces_failed_only:
            surplus += self.terminating
        if surplus < -BURST:
            self.waits.append(0.0)
        if self.indexed:
            self._start_indexes(min(-surplus, BURST))
        elif surplus < 0 and not self._backs_off():
            for _ in range(min(-surplus, BURST)):
                self._start(job_pods.new_job_pod(self.job, None))

    def _wanted(self) -> int:
        if self.completions is None:
            return self.parallelism if not self.succeeded else len(self.active)
        return max(0, min(self.parallelism, self.completions - self.succeeded - len(self.failed_indexes)))

    def _start_indexes(self, most: int) -> None:
        """Start pods of the first indexes that have none, unless their failures ask for a pause."""
        if most <= 0 or (not self.per_index and self._backs_off()):
            return
        for index in self._free_indexes():
            failed = job_failures.last_failed(self.pods, index, self.now) if self.per_index else None
            if failed is not None and (wait := job_failures.index_back_off(failed, self.now)) > 0:
                self.waits.append(wait)
                continue
            pod = job_pods.new_job_pod(self.job, index)
            if self.per_index:
                job_failures.note_failures(self.job, pod, failed)
            self._start(pod)
            most -= 1
            if not most:
                return

    def _free_indexes(self) -> Iterable[int]:
        ending = filter(job_pods.is_terminating, self.pods if self.replaces_failed_only else ())
        taken = {job_pods.index_of_pod(pod) for pod in (*self.active, *ending)}
        taken |= self.done | self.failed_indexes
        return (index for index in range(self.completions or 0) if index not in taken)

    def _backs_off(self) -> bool:
        """Whether the next pod has to wait, since others have failed."""
        ends = [job_pods.ended_at(pod, self.now) for pod in self.pods if job_pods.has_failed(pod)]
        if not ends or not self.failed:
            return False
        wait = max(ends) + job_failures.pause(self.failed) - self.now
        if wait > 0:
            self.waits.append(wait)
        return wait > 0

    def _start(self, pod: Object) -> None:
        self.active.append(create_pod(self.registry, self.job, pod, COMPONENT))

    def _complete(self) -> None:
        words = ("CompletionsReached", "Reached expected number of succeeded pods")
        self._set("SuccessCriteriaMet", *words)
        self._set("Complete", *words)
        self._delete(self.active)
        self.end = timestamp(self.now)
        self.registry.event(self.job, "Normal", "Completed", "Job completed", COMPONENT)

    def _fail(self, reason: str, message: str) -> None:
        self._set("FailureTarget", reason, message)
        self._set("Failed", reason, message)
        self.failed += len(self.active)
        self._delete(self.active)
        self.registry.event(self.job, "Warning", reason, message, COMPONENT)

    def _suspend(self) -> None:
        if (condition(self.job, "Suspended") or {}).get("status") != "True":
            self._set("Suspended", "JobSuspended", "Job suspended")
            self.registry.event(self.job, "Normal", "Suspended", "Job suspended", COMPONENT)
        self.start = None
        self._delete(self.active)

    def _resume(self) -> None:
        if (condition(self.job, "Suspended") or {}).get("status") == "True":
            self._set("Suspended", "JobResumed", "Job resumed", status="False")
            self.registry.event(self.job, "Normal", "Resumed", "Job resumed", COMPONENT)
        self.start = self.start or timestamp(self.now)

    def _delete(self, pods: list[Object]) -> None:
        """Delete pods that run; they are not counted as failures of their own."""
        for pod in list(pods):
            job_pods.let_go(self.registry, pod)
            delete_pod(self.registry, self.job, pod, COMPONENT)
            self.active.remove(pod)

    def write(self) -> None:
        """Write the status, and let go of the pods that it now counts."""
        status: dict[str, Any] = counted(
            active=len(self.active), succeeded=self.succeeded, failed=self.failed
        )
        status |= {"ready": sum(is_ready(pod) for pod in self.active), "terminating": self.terminating}
        status["uncountedTerminatedPods"] = {}
        status |= {"startTime": self.start} if self.start else {}
        status |= {"completionTime": self.end} if self.end else {}
        status |= {"conditions": self.conditions} if self.conditions else {}
        status |= {"completedIndexes": job_pods.formatted(self.done)} if self.done else {}
        status |= {"failedIndexes": job_pods.formatted(self.failed_indexes)} if self.per_index else {}
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
