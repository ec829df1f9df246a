"""The end of a pod that somebody deletes."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from kubelet_lab import KubeletLab, in_lab, pause, shell, state_of

from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.api.objects import meta
from gpuworkshop.lab.kubelet import manager


def test_deletion_gives_the_process_time_to_end() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("trap 'echo asked to end; exit 0' TERM; echo up; while :; do sleep 0.05; done"))
        await lab.ready("app")
        await lab.logged("app", b"up\n")
        followed = asyncio.create_task(lab.log("app", follow=True))
        lab.registry.delete(POD, "default", "app")
        await lab.gone("app")
        assert await followed == b"up\nasked to end\n"
        assert "Stopping container main" in lab.events("app")["Killing"]

    in_lab(test)


def test_process_that_ignores_sigterm_is_killed_after_the_grace_period() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("trap '' TERM; echo up; while :; do sleep 0.05; done"))
        await lab.logged("app", b"up\n")
        lab.registry.delete(POD, "default", "app", grace_period=1)
        assert meta(lab.get("app"))["deletionTimestamp"]
        await lab.gone("app")

    in_lab(test)


def test_second_deletion_can_be_quicker() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("trap '' TERM; echo up; while :; do sleep 0.05; done"))
        await lab.logged("app", b"up\n")
        lab.registry.delete(POD, "default", "app", grace_period=3600)
        lab.registry.delete(POD, "default", "app", grace_period=1)
        await lab.gone("app")

    in_lab(test)


def test_finalizer_keeps_the_object_with_its_last_status() -> None:
    async def test(lab: KubeletLab) -> None:
        made = lab.pod("app", shell("sleep 60"))
        await lab.ready("app")

        def hold(pod: Any) -> None:
            pod["metadata"]["finalizers"] = ["example.com/hold"]

        lab.registry.modify(POD, "default", made["metadata"]["name"], hold)
        lab.registry.delete(POD, "default", "app")
        pod = await lab.phase("app", "Failed")
        assert state_of(pod)["terminated"]["exitCode"] == 143

    in_lab(test)


def test_deleted_pod_leaves_no_folder() -> None:
    async def test(lab: KubeletLab) -> None:
        pod = lab.pod("app", shell("sleep 60"))
        await lab.ready("app")
        folder = lab.state / "lab" / "pods" / pod["metadata"]["uid"]
        assert folder.stat().st_mode & 0o777 == 0o700
        lab.registry.delete(POD, "default", "app", grace_period=0)
        await lab.gone("app")
        lab.pod("later", pause())
        await lab.ready("later")  # changes are handled in order
        await lab.kubelets.stop()
        assert not folder.exists()

    in_lab(test)


def test_change_of_a_pod_that_ends_does_not_give_it_more_time() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("trap '' TERM; echo up; while :; do sleep 0.05; done"))
        await lab.logged("app", b"up\n")
        lab.registry.delete(POD, "default", "app", grace_period=1)
        for number in range(50):
            lab.registry.modify(POD, "default", "app", partial(_label, str(number)))
            await asyncio.sleep(0.05)
        assert lab.registry.find(POD, "default", "app") is None

    in_lab(test)


def _label(value: str, pod: dict[str, Any]) -> None:
    pod["metadata"]["labels"] = {"changed": value}


def test_end_of_the_lab_gives_no_more_time_to_what_is_being_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "END_GRACE_S", 600.0)

    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("trap '' TERM; echo up; while :; do sleep 0.05; done"))
        await lab.logged("app", b"up\n")
        lab.registry.delete(POD, "default", "app", grace_period=0)
        await lab.gone("app")
        async with asyncio.timeout(20):
            await lab.kubelets.stop()

    in_lab(test)
