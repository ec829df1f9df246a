"""Jobs: pods that run until enough of them have succeeded, or too many have failed."""

from __future__ import annotations

from collections.abc import Mapping

from gpuworkshop.lab.api.kinds import JOB, POD, Kind
from gpuworkshop.lab.api.objects import (
    Object,
    condition,
    controller_of,
    is_deleted,
    name_of,
    namespace_of,
    seconds_of,
    uid_of,
)
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import job_pods
from gpuworkshop.lab.controllers.conditions import conditions_of
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.job_work import COMPONENT, Work
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, key_of_controller, own_key
from gpuworkshop.lab.controllers.pods import is_active


class JobController(Controller):
    """Runs Jobs to their end, and deletes them some time after if they say so."""

    name = COMPONENT
    watches: Mapping[Kind, Keys] = {JOB: own_key, POD: key_of_controller(JOB)}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Count what has ended, make or delete pods, and write the status."""
        job = registry.find(JOB, *key)
        if job is None or is_deleted(job):
            self._release(registry, key)
            return None
        if _is_ended(job):
            return self._expire(registry, job)
        work = Work(registry, job)
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
