"""Jobs: counted once, tried again, ended in time."""

from __future__ import annotations

from typing import Any

import controllers_lab as lab
import pytest

from gpuworkshop.lab.api.kinds import JOB, POD
from gpuworkshop.lab.api.objects import Object, condition, is_deleted, labels_of, name_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import job_pods
from gpuworkshop.lab.controllers.jobs import JobController


class Bench:
    """One Job, looked at step by step, under a clock that stands still."""

    def __init__(self, **spec: Any) -> None:
        self.clock = lab.Clock()
        self.registry: Registry = lab.new_registry(clock=self.clock)
        self.controller = JobController()
        body = {"template": lab.template({}, restartPolicy="Never"), **spec}
        metadata = {"name": "burn", "namespace": "default"}
        self.registry.create(JOB, {"metadata": metadata, "spec": body})

    def look(self) -> float | None:
        """Two looks, as the second sees what the first has done."""
        self.controller.reconcile(self.registry, ("default", "burn"))
        return self.controller.reconcile(self.registry, ("default", "burn"))

    @property
    def job(self) -> Object:
        return self.registry.get(JOB, "default", "burn")

    @property
    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.job.get("status") or {}
        return found

    def active(self) -> list[str]:
        return lab.names(lab.active_pods(self.registry))

    def end(self, phase: str, count: int = 1) -> None:
        for name in self.active()[:count]:
            lab.finish(self.registry, name, phase)

    def says(self, kind: str) -> tuple[str, str, str]:
        found = condition(self.job, kind) or {}
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def test_a_job_of_one_pod_completes() -> None:
    bench = Bench(completions=1, parallelism=1)
    bench.look()
    (name,) = bench.active()
    assert name.startswith("burn-")
    assert (bench.status["active"], bench.status["ready"]) == (1, 0)
    bench.end("Succeeded")
    bench.look()
    words = ("True", "CompletionsReached", "Reached expected number of succeeded pods")
    assert bench.says("Complete") == words == bench.says("SuccessCriteriaMet")
    assert bench.status["succeeded"] == 1
    assert "active" not in bench.status
    assert bench.status["completionTime"] == bench.status["startTime"]
    assert lab.messages(bench.registry, "Completed") == ["Job completed"]
    assert not job_pods.is_tracked(bench.registry.get(POD, "default", name))


def test_its_pods_are_found_by_the_labels_of_the_real_one() -> None:
    bench = Bench()
    bench.look()
    (pod,) = bench.registry.list(POD)
    uid = bench.job["metadata"]["uid"]
    assert (
        labels_of(pod).items()
        >= {
            "job-name": "burn",
            "batch.kubernetes.io/job-name": "burn",
            "controller-uid": uid,
            "batch.kubernetes.io/controller-uid": uid,
        }.items()
    )


def test_parallel_pods_are_no_more_than_are_needed() -> None:
    bench = Bench(completions=5, parallelism=3)
    bench.look()
    assert len(bench.active()) == 3
    bench.end("Succeeded", 3)
    bench.look()
    assert len(bench.active()) == 2
    bench.end("Succeeded", 2)
    bench.look()
    assert bench.status["succeeded"] == 5
    assert bench.says("Complete")[0] == "True"


def test_a_failure_is_tried_again_after_a_pause_that_doubles() -> None:
    bench = Bench(completions=1, backoffLimit=3)
    for pause in (10.0, 20.0, 40.0):
        bench.look()
        bench.end("Failed")
        assert bench.look() == pause
        assert bench.active() == []
        bench.clock.now += pause
    bench.look()
    assert bench.status["failed"] == 3
    assert len(bench.active()) == 1


def test_too_many_failures_end_it() -> None:
    bench = Bench(completions=1, backoffLimit=0)
    bench.look()
    bench.end("Failed")
    bench.look()
    words = ("True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    assert bench.says("Failed") == words == bench.says("FailureTarget")
    assert lab.messages(bench.registry, "BackoffLimitExceeded") == [words[2]]
    assert bench.status["failed"] == 1
    bench.look()
    assert bench.active() == []


def test_a_deadline_ends_it_and_its_pods() -> None:
    bench = Bench(completions=2, parallelism=2, activeDeadlineSeconds=60)
    assert bench.look() == 60.0
    bench.clock.now += 60
    bench.look()
    assert bench.says("Failed")[1:] == ("DeadlineExceeded", "Job was active longer than specified deadline")
    assert bench.active() == []
    assert bench.status["failed"] == 2


def test_it_goes_some_time_after_its_end() -> None:
    bench = Bench(ttlSecondsAfterFinished=30)
    bench.look()
    bench.end("Succeeded")
    assert bench.look() == 30.0
    bench.clock.now += 30
    bench.controller.reconcile(bench.registry, ("default", "burn"))
    assert bench.registry.find(JOB, "default", "burn") is None


def test_suspended_it_has_no_pods_until_it_is_resumed() -> None:
    bench = Bench(suspend=True)
    bench.look()
    assert bench.active() == []
    assert bench.says("Suspended") == ("True", "JobSuspended", "Job suspended")
    assert "startTime" not in bench.status
    lab.modify(bench.registry, JOB, "burn", suspend=False)
    bench.look()
    assert len(bench.active()) == 1
    assert bench.says("Suspended") == ("False", "JobResumed", "Job resumed")
    lab.modify(bench.registry, JOB, "burn", suspend=True)
    bench.look()
    assert bench.active() == []
    assert bench.status.get("failed", 0) == 0


def test_a_pod_is_counted_once_even_if_it_is_deleted() -> None:
    bench = Bench(completions=2, parallelism=1)
    bench.look()
    (first,) = bench.active()
    bench.end("Succeeded")
    bench.registry.delete(POD, "default", first)
    assert is_deleted(bench.registry.get(POD, "default", first))  # held until it is counted
    bench.look()
    assert bench.registry.find(POD, "default", first) is None
    bench.look()
    assert bench.status["succeeded"] == 1
    assert len(bench.active()) == 1


def test_a_running_pod_that_is_deleted_counts_as_failed() -> None:
    bench = Bench(completions=1)
    bench.look()
    (first,) = bench.active()
    bench.registry.delete(POD, "default", first)
    bench.look()
    assert bench.status["failed"] == 1


def test_a_work_queue_is_done_when_one_has_succeeded_and_none_runs() -> None:
    bench = Bench(parallelism=2)

    def without_completions(live: Object) -> None:
        live["spec"].pop("completions", None)

    bench.registry.modify(JOB, "default", "burn", without_completions)
    bench.look()
    assert len(bench.active()) == 2
    bench.end("Succeeded")
    bench.look()
    assert len(bench.active()) == 1
    assert bench.says("Complete")[0] == ""
    bench.end("Succeeded")
    bench.look()
    assert bench.says("Complete")[0] == "True"


def test_indexed_pods_each_have_their_index() -> None:
    bench = Bench(completions=3, parallelism=3, completionMode="Indexed")
    bench.look()
    pods = {job_pods.index_of_pod(pod): pod for pod in bench.registry.list(POD)}
    assert sorted(index for index in pods if index is not None) == [0, 1, 2]
    middle = pods[1]
    assert name_of(middle).startswith("burn-1-")
    assert middle["spec"]["hostname"] == "burn-1"
    assert [each["name"] for each in middle["spec"]["containers"][0]["env"]] == ["JOB_COMPLETION_INDEX"]
    for index in (0, 2):
        lab.finish(bench.registry, name_of(pods[index]), "Succeeded")
    bench.look()
    assert bench.status["completedIndexes"] == "0,2"
    lab.finish(bench.registry, name_of(middle), "Failed")
    bench.look()
    bench.clock.now += 10
    bench.look()
    (again,) = lab.active_pods(bench.registry)
    assert job_pods.index_of_pod(again) == 1
    lab.finish(bench.registry, name_of(again), "Succeeded")
    bench.look()
    assert bench.status["completedIndexes"] == "0-2"
    assert bench.says("Complete")[0] == "True"


def test_the_pods_of_a_job_that_is_gone_are_let_go() -> None:
    bench = Bench()
    bench.look()
    (pod,) = bench.registry.list(POD)
    bench.registry.delete(JOB, "default", "burn")
    bench.controller.reconcile(bench.registry, ("default", "burn"))
    assert not job_pods.is_tracked(bench.registry.get(POD, "default", name_of(pod)))


@pytest.mark.parametrize(
    ("indexes", "text"),
    [(set(), ""), ({3}, "3"), ({0, 1}, "0,1"), ({0, 1, 2, 5, 7, 8, 9}, "0-2,5,7-9")],
)
def test_indexes_are_written_in_runs(indexes: set[int], text: str) -> None:
    assert job_pods.formatted(indexes) == text
    assert job_pods.parsed(text) == indexes
