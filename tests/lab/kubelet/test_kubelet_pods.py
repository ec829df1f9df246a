"""The life of a pod, from its binding to its deletion."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from kubelet_lab import KubeletLab, in_lab, is_true, pause, shell, state_of, statuses

from gpuworkshop.lab.api.kinds import EVENT, POD


def test_pause_is_running_and_ready_with_one_write() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("web", pause())
        with lab.registry.changes(POD) as changes:
            await anext(changes)
            change = await anext(changes)
        status = change.object["status"]
        assert status["phase"] == "Running"
        assert all(is_true(change.object, kind) for kind in ("Ready", "ContainersReady", "Initialized"))
        assert status["podIP"].startswith(f"{str(lab.subnet.network.network_address)[:-4]}.")
        (container,) = status["containerStatuses"]
        assert (container["ready"], container["started"], container["restartCount"]) == (True, True, 0)
        assert "a pause stands in for it" in lab.events("web")["Simulated"]
        assert {"Pulled", "Created", "Started"} <= set(lab.events("web"))

    in_lab(test)


def test_thousand_pauses_cost_a_write_each_and_no_folder() -> None:
    async def test(lab: KubeletLab) -> None:
        writes, ready = Counter[str](), set[str]()
        with lab.registry.changes(POD, EVENT) as changes:
            for number in range(1000):
                lab.pod(f"web-{number}", pause())
            async with asyncio.timeout(60):
                while len(ready) < 1000 or writes["Event"] < 4000:
                    change = await anext(changes)
                    writes[change.kind.kind] += 1
                    if change.kind is POD and is_true(change.object, "Ready"):
                        ready.add(change.object["status"]["podIP"])
        assert writes == {"Pod": 2000, "Event": 4000}  # its creation and a status, four events
        assert not list((lab.state / "lab" / "pods").iterdir())

    in_lab(test)


def test_job_like_pod_succeeds_and_says_when() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("job", shell("echo done"), restartPolicy="Never")
        pod = await lab.phase("job", "Succeeded")
        over = state_of(pod)["terminated"]
        assert (over["exitCode"], over["reason"]) == (0, "Completed")
        assert over["startedAt"] <= over["finishedAt"]
        ready = next(found for found in pod["status"]["conditions"] if found["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "PodCompleted")
        assert await lab.log("job") == b"done\n"

    in_lab(test)


def test_failing_pod_that_must_not_restart_has_failed_with_its_exit_code() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("job", shell("exit 3"), restartPolicy="Never")
        over = state_of(await lab.phase("job", "Failed"))["terminated"]
        assert (over["exitCode"], over["reason"]) == (3, "Error")

    in_lab(test)


def test_on_failure_starts_again_until_it_succeeds() -> None:
    async def test(lab: KubeletLab) -> None:
        script = "test -f once && exit 0; touch once; exit 1"
        lab.pod("job", shell(script), restartPolicy="OnFailure")
        pod = await lab.phase("job", "Succeeded")
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 1

    in_lab(test)


def test_crash_loop_backs_off_and_keeps_the_last_state_and_log() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("crash", shell("echo I am life $$; exit 7"))

        def waiting() -> dict[str, Any]:
            status = statuses(lab.get("crash"))[0]
            return (status.get("state") or {}).get("waiting") or {} if status.get("restartCount") == 2 else {}

        await lab.until(waiting)
        pod = lab.get("crash")
        assert waiting()["reason"] == "CrashLoopBackOff"
        assert waiting()["message"].startswith(
            "back-off 0.1s restarting failed container=main pod=crash_default("
        )
        assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 7
        assert pod["status"]["phase"] == "Running"
        assert not is_true(pod, "Ready")
        assert "Back-off restarting failed container main" in lab.events("crash")["BackOff"]
        assert (await lab.log("crash", previous=True)).startswith(b"I am life")

    in_lab(test)


def test_program_that_is_not_there_is_a_start_error() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("typo", shell("", command=["no-such-program"]), restartPolicy="Never")
        over = state_of(await lab.phase("typo", "Failed"))["terminated"]
        assert (over["exitCode"], over["reason"]) == (128, "StartError")
        assert 'exec: "no-such-program": executable file not found in $PATH' in over["message"]

    in_lab(test)


def test_init_containers_run_in_order_before_the_others() -> None:
    async def test(lab: KubeletLab) -> None:
        mounts = [{"name": "shared", "mountPath": "/shared"}]
        inits = [
            shell(f"echo {name} >> /shared/order", name=name, volumeMounts=mounts) for name in ("one", "two")
        ]
        main = shell("cat /shared/order; sleep 60", volumeMounts=mounts)
        lab.pod("app", main, initContainers=inits, volumes=[{"name": "shared", "emptyDir": {}}])
        pod = await lab.ready("app")
        assert [
            found["state"]["terminated"]["exitCode"] for found in pod["status"]["initContainerStatuses"]
        ] == [0, 0]
        await lab.logged("app", b"one\ntwo\n")

    in_lab(test)


def test_an_init_container_that_is_not_run_ends_at_once() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", pause(), initContainers=[pause(name="setup")])
        pod = await lab.ready("app")
        (status,) = pod["status"]["initContainerStatuses"]
        assert status["state"]["terminated"]["exitCode"] == 0

    in_lab(test)


def test_failed_init_container_fails_the_pod() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", pause(), initContainers=[shell("exit 1", name="init")], restartPolicy="Never")
        pod = await lab.phase("app", "Failed")
        assert not is_true(pod, "Initialized")
        assert pod["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}

    in_lab(test)


def test_sidecar_starts_first_and_ends_with_the_others() -> None:
    async def test(lab: KubeletLab) -> None:
        sidecar = shell("sleep 60", name="side", restartPolicy="Always")
        lab.pod("app", shell("true"), initContainers=[sidecar], restartPolicy="Never")
        pod = await lab.phase("app", "Succeeded")
        await lab.until(lambda: "terminated" in lab.get("app")["status"]["initContainerStatuses"][0]["state"])
        assert pod["status"]["initContainerStatuses"][0]["name"] == "side"

    in_lab(test)


def test_failed_init_container_ends_the_sidecars_before_it() -> None:
    async def test(lab: KubeletLab) -> None:
        inits = [shell("sleep 600", name="side", restartPolicy="Always"), shell("exit 1", name="init")]
        lab.pod("app", pause(), initContainers=inits, restartPolicy="Never")
        pod = await lab.phase("app", "Failed")
        assert "terminated" in pod["status"]["initContainerStatuses"][0]["state"]

    in_lab(test)
