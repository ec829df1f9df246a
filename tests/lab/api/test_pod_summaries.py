"""STATUS, READY and RESTARTS of pods, as the real printer computes them."""

from __future__ import annotations

from typing import Any

import pytest

from gpuworkshop.lab.api.objects import Object, timestamp
from gpuworkshop.lab.api.pod_summary import summary

NOW = 1_900_000_000.0
RUNNING = {"running": {"startedAt": timestamp(NOW - 60)}}


def waiting(reason: str) -> dict[str, Any]:
    return {"waiting": {"reason": reason}}


def ended(code: int = 0, reason: str = "", signal: int = 0) -> dict[str, Any]:
    found = {"exitCode": code, "reason": reason, "signal": signal}
    return {"terminated": {key: value for key, value in found.items() if value or key == "exitCode"}}


def container(state: dict[str, Any], ready: bool = False, restarts: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": "c", "state": state, "ready": ready, "restartCount": restarts, **more}


def pod(
    *containers: dict[str, Any],
    phase: str = "Running",
    init: tuple[dict[str, Any], ...] = (),
    conditions: dict[str, str] | None = None,
    **status: Any,
) -> Object:
    return {
        "metadata": {"name": "p"},
        "spec": {
            "containers": [{"name": f"c{n}"} for n, _ in enumerate(containers or "1")],
            "initContainers": [{"name": f"i{n}"} for n, _ in enumerate(init)],
        },
        "status": {
            "phase": phase,
            "conditions": [{"type": key, "status": value} for key, value in (conditions or {}).items()],
            "containerStatuses": list(containers),
            "initContainerStatuses": [{**each, "name": f"i{n}"} for n, each in enumerate(init)],
            **status,
        },
    }


def deleted(found: Object) -> Object:
    found["metadata"]["deletionTimestamp"] = timestamp(NOW)
    return found


@pytest.mark.parametrize(
    ("found", "status", "ready"),
    [
        (pod(phase="Pending"), "Pending", "0/1"),
        (pod(container(waiting("ContainerCreating")), phase="Pending"), "ContainerCreating", "0/1"),
        (pod(container(RUNNING, ready=True)), "Running", "1/1"),
        (pod(container(RUNNING, ready=True), container(RUNNING)), "Running", "1/2"),
        (pod(container(waiting("CrashLoopBackOff"), restarts=4)), "CrashLoopBackOff", "0/1"),
        (pod(container(waiting("ImagePullBackOff")), phase="Pending"), "ImagePullBackOff", "0/1"),
        (pod(container(ended(0, "Completed")), phase="Succeeded"), "Completed", "0/1"),
        (pod(container(ended(1, "Error")), phase="Failed"), "Error", "0/1"),
        (pod(container(ended(137, "OOMKilled"))), "OOMKilled", "0/1"),
        (pod(container(ended(3))), "ExitCode:3", "0/1"),
        (pod(container(ended(0, signal=9))), "Signal:9", "0/1"),
        (pod(phase="Failed", reason="Evicted"), "Evicted", "0/1"),
        (
            pod(
                container(ended(0, "Completed")), container(RUNNING, ready=True), conditions={"Ready": "True"}
            ),
            "Running",
            "1/2",
        ),
        (pod(container(ended(0, "Completed")), container(RUNNING, ready=True)), "NotReady", "1/2"),
        (deleted(pod(container(RUNNING, ready=True))), "Terminating", "1/1"),
        (deleted(pod(container(ended(0, "Completed")), phase="Succeeded")), "Completed", "0/1"),
        (deleted(pod(reason="NodeLost")), "Unknown", "0/1"),
        (pod(phase="Pending", init=(container(RUNNING), container({}))), "Init:0/2", "0/1"),
        (
            pod(
                phase="Pending",
                init=(container(ended(0, "Completed")), container(waiting("PodInitializing"))),
            ),
            "Init:1/2",
            "0/1",
        ),
        (pod(phase="Pending", init=(container(ended(1, "Error")),)), "Init:Error", "0/1"),
        (pod(phase="Pending", init=(container(ended(2)),)), "Init:ExitCode:2", "0/1"),
        (pod(phase="Pending", init=(container(ended(2, signal=15)),)), "Init:Signal:15", "0/1"),
        (
            pod(phase="Pending", init=(container(waiting("CrashLoopBackOff")),)),
            "Init:CrashLoopBackOff",
            "0/1",
        ),
        (
            pod(container(RUNNING, ready=True), init=(container(ended(0, "Completed")),)),
            "Running",
            "1/1",
        ),
    ],
)
def test_status_and_ready(found: Object, status: str, ready: str) -> None:
    told = summary(found)
    assert (told.status, f"{told.ready}/{told.total}") == (status, ready)


def test_a_pod_that_is_held_back() -> None:
    found = pod(phase="Pending")
    found["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    assert summary(found).status == "SchedulingGated"


def test_sidecars_count() -> None:
    found = pod(
        container(RUNNING, ready=True), init=(container(RUNNING, ready=True, restarts=2, started=True),)
    )
    found["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    told = summary(found)
    assert (told.status, told.ready, told.total) == ("Running", 2, 2)
    assert told.restarts.text(NOW) == "2"


def test_restarts_say_when_the_last_one_was() -> None:
    long_ago = {"terminated": {"finishedAt": timestamp(NOW - 9000)}}
    lately = {"terminated": {"finishedAt": timestamp(NOW - 125)}}
    found = pod(
        container(RUNNING, restarts=1, lastState=lately), container(RUNNING, restarts=2, lastState=long_ago)
    )
    assert summary(found).restarts.text(NOW) == "3 (2m5s ago)"
    assert summary(pod(container(RUNNING, restarts=3))).restarts.text(NOW) == "3"
    assert summary(pod(container(RUNNING))).restarts.text(NOW) == "0"


def test_restarts_of_init_containers_count_only_until_they_are_done() -> None:
    lately = {"terminated": {"finishedAt": timestamp(NOW - 30)}}
    init = container(waiting("CrashLoopBackOff"), restarts=5, lastState=lately)
    assert summary(pod(phase="Pending", init=(init,))).restarts.text(NOW) == "5 (30s ago)"
    done = container(ended(0, "Completed"), restarts=5, lastState=lately)
    assert summary(pod(container(RUNNING, ready=True), init=(done,))).restarts.text(NOW) == "0"


def test_a_pod_without_a_status() -> None:
    told = summary({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}})
    assert (told.status, told.ready, told.total, told.restarts.text(NOW)) == ("", 0, 1, "0")
