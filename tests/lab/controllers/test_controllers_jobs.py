"""Jobs: counted once, tried again, ended in time."""

from __future__ import annotations

from typing import Any

import controllers_lab as lab
import pytest

from gpuworkshop.lab.api.kinds import JOB, POD
from gpuworkshop.lab.api.objects import Object, condition, is_deleted, labels_of, name_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import job_pods
from gpuworkshop.lab.controllers.conditions import write_status
from gpuworkshop.lab.controllers.job_work import BURST
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

    def restart(self, name: str, count: int) -> None:
        """Have a pod's container be started again so often."""
        status = [{"name": "main", "restartCount": count}]
        pod = self.registry.get(POD, "default", name)
        write_status(self.registry, POD, pod, {"phase": "Running", "containerStatuses": status})

    def pod_of(self, index: int) -> Object:
        """The active pod of an index."""
        (found,) = (pod for pod in lab.active_pods(self.registry) if job_pods.index_of_pod(pod) == index)
        return found

    def end_index(self, index: int, phase: str) -> None:
        lab.finish(self.registry, name_of(self.pod_of(index)), phase)

    def indexes(self) -> list[int]:
        return sorted(job_pods.index_of_pod(pod) or 0 for pod in lab.active_pods(self.registry))

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


def test_restarts_within_pods_count_under_on_failure() -> None:
    template = lab.template({}, restartPolicy="OnFailure")
    bench = Bench(completions=2, parallelism=2, backoffLimit=3, template=template)
    bench.look()
    first, second = bench.active()
    bench.restart(first, 1)
    bench.restart(second, 1)
    bench.look()
    assert bench.says("Failed")[0] == ""
    bench.restart(second, 2)
    bench.look()
    assert bench.says("Failed")[:2] == ("True", "BackoffLimitExceeded")
    assert bench.active() == []
    assert bench.status["failed"] == 2


@pytest.mark.parametrize(("policy", "ends"), [("OnFailure", True), ("Never", False)])
def test_without_a_back_off_one_restart_is_too_many(policy: str, ends: bool) -> None:
    bench = Bench(completions=1, backoffLimit=0, template=lab.template({}, restartPolicy=policy))
    bench.look()
    (name,) = bench.active()
    bench.restart(name, 0)
    bench.look()
    assert bench.says("Failed")[0] == ""
    bench.restart(name, 1)
    bench.look()
    assert (bench.says("Failed")[0] == "True") is ends


def indexed(**spec: Any) -> Bench:
    return Bench(completions=3, parallelism=3, completionMode="Indexed", backoffLimitPerIndex=1, **spec)


def test_each_index_has_failures_of_its_own() -> None:
    bench = indexed()
    bench.look()
    bench.end_index(0, "Succeeded")
    bench.end_index(1, "Failed")
    assert bench.look() == 10.0
    assert bench.indexes() == [2]
    bench.clock.now += 10
    bench.look()
    assert bench.indexes() == [1, 2]
    again = bench.pod_of(1)
    assert job_pods.noted(again, job_pods.INDEX_FAILURES) == 1
    bench.end_index(1, "Failed")
    bench.look()
    assert (bench.status["completedIndexes"], bench.status["failedIndexes"]) == ("0", "1")
    assert bench.says("Failed")[0] == "", "the other indexes go on"
    bench.clock.now += 600
    bench.look()
    assert bench.indexes() == [2], "an index that has failed is not tried again"
    bench.end_index(2, "Succeeded")
    bench.look()
    assert bench.says("Failed")[1:] == ("FailedIndexes", "Job has failed indexes")
    assert bench.status["completedIndexes"] == "0,2"
    assert bench.status["failed"] == 2


def test_too_many_failed_indexes_end_it_at_once() -> None:
    bench = indexed(maxFailedIndexes=1)
    bench.look()
    for _ in range(2):
        bench.end_index(0, "Failed")
        bench.end_index(2, "Failed")
        bench.look()
        bench.clock.now += 10
        bench.look()
    words = "Job has exceeded the specified maximal number of failed indexes"
    assert bench.says("Failed") == ("True", "MaxFailedIndexesExceeded", words)
    assert bench.status["failedIndexes"] == "0,2"
    assert bench.active() == []


def test_an_index_that_no_limit_is_set_for_has_no_list_of_failures() -> None:
    bench = Bench(completions=1, completionMode="Indexed")
    bench.look()
    assert "failedIndexes" not in bench.status
    assert indexed().status == {}


def policy(action: str, **when: Any) -> dict[str, Any]:
    return {"podFailurePolicy": {"rules": [{"action": action, **when}]}}


CODE_1 = {"onExitCodes": {"operator": "In", "values": [1, 42]}}
DISRUPTED = {"onPodConditions": [{"type": "DisruptionTarget"}]}


def test_a_rule_ends_the_job() -> None:
    bench = Bench(**policy("FailJob", **CODE_1))
    bench.look()
    (name,) = bench.active()
    bench.end("Failed")
    bench.look()
    words = f"Container main for pod default/{name} failed with exit code 1 matching FailJob rule at index 0"
    assert bench.says("Failed") == ("True", "PodFailurePolicy", words)
    assert bench.says("FailureTarget")[1] == "PodFailurePolicy"
    assert lab.messages(bench.registry, "PodFailurePolicy") == [words]


@pytest.mark.parametrize(
    "when",
    [
        {"onExitCodes": {"operator": "NotIn", "values": [2, 3]}},
        {"onExitCodes": {"operator": "In", "values": [1], "containerName": "main"}},
        CODE_1,
    ],
)
def test_a_failure_that_a_rule_ignores_is_not_counted(when: dict[str, Any]) -> None:
    bench = Bench(backoffLimit=0, **policy("Ignore", **when))
    for _ in range(3):
        bench.look()
        bench.end("Failed")
        bench.look()
    assert bench.says("Failed")[0] == ""
    assert bench.status.get("failed", 0) == 0
    assert len(bench.active()) == 1


@pytest.mark.parametrize(
    "when",
    [
        {"onExitCodes": {"operator": "In", "values": [2]}},
        {"onExitCodes": {"operator": "NotIn", "values": [1]}},
        DISRUPTED,
    ],
)
def test_a_failure_that_no_rule_is_for_counts(when: dict[str, Any]) -> None:
    bench = Bench(backoffLimit=0, **policy("Ignore", **when))
    bench.look()
    bench.end("Failed")
    bench.look()
    assert bench.says("Failed")[:2] == ("True", "BackoffLimitExceeded")


def test_a_rule_for_conditions() -> None:
    bench = Bench(**policy("FailJob", **DISRUPTED))
    bench.look()
    (name,) = bench.active()
    bench.end("Failed")

    def disrupt(live: Object) -> None:
        live["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True"}]

    bench.registry.modify(POD, "default", name, disrupt, "status")
    bench.look()
    words = f"Pod default/{name} has condition DisruptionTarget matching FailJob rule at index 0"
    assert bench.says("Failed")[2] == words


def test_a_rule_gives_an_index_up() -> None:
    bench = indexed(**policy("FailIndex", **CODE_1))
    bench.look()
    bench.end_index(1, "Failed")
    bench.look()
    assert bench.status["failedIndexes"] == "1"
    assert bench.indexes() == [0, 2]


def test_with_rules_a_pod_is_replaced_when_it_is_over() -> None:
    bench = Bench(**policy("Ignore", **DISRUPTED))
    bench.look()
    (name,) = bench.active()
    lab.run(bench.registry, bench.registry.get(POD, "default", name))
    bench.registry.modify(POD, "default", name, lambda pod: pod["spec"].update(nodeName="one"), "binding")
    bench.registry.delete(POD, "default", name)
    bench.look()
    assert (bench.status["terminating"], bench.active()) == (1, [])
    lab.finish(bench.registry, name, "Failed")
    bench.look()
    bench.clock.now += 10
    bench.look()
    assert (bench.status["terminating"], bench.status["failed"]) == (0, 1)
    assert len(bench.active()) == 1


def test_the_pods_of_a_job_that_is_gone_are_let_go() -> None:
    bench = Bench()
    bench.look()
    (pod,) = bench.registry.list(POD)
    bench.registry.delete(JOB, "default", "burn")
    bench.controller.reconcile(bench.registry, ("default", "burn"))
    assert not job_pods.is_tracked(bench.registry.get(POD, "default", name_of(pod)))


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
def test_the_pods_of_a_large_job_come_in_bursts(mode: str) -> None:
    bench = Bench(completions=2**31 - 1, parallelism=60, completionMode=mode)
    assert bench.controller.reconcile(bench.registry, ("default", "burn")) == 0.0
    assert len(bench.active()) == BURST
    assert bench.look() is None
    assert len(bench.active()) == 60


def test_a_status_that_somebody_has_spoilt_is_read_as_far_as_it_goes() -> None:
    bench = indexed()
    spoilt = {"completedIndexes": "x,1,0-99999999999,-,7-,2-9999999999", "failedIndexes": "a-b"}
    write_status(bench.registry, JOB, bench.job, spoilt)
    bench.look()
    assert bench.status["completedIndexes"] == "1,2"
    assert bench.indexes() == [0]


@pytest.mark.parametrize(
    ("indexes", "text"),
    [(set(), ""), ({3}, "3"), ({0, 1}, "0,1"), ({0, 1, 2, 5, 7, 8, 9}, "0-2,5,7-9")],
)
def test_indexes_are_written_in_runs(indexes: set[int], text: str) -> None:
    assert job_pods.formatted(indexes) == text
    assert job_pods.parsed(text, range(10)) == indexes
