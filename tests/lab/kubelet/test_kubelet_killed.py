"""kill -9 of the lab's process: nothing is left behind, and the pods go on at the next start."""

from __future__ import annotations

import asyncio
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import kubelet_process
import pytest
from kubelet_lab import NODE_NAME, KubeletLab, pause

from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.kubelet import leftovers, manager
from gpuworkshop.lab.kubelet.devices import Devices
from gpuworkshop.lab.kubelet.spawn import MARK, Spawner
from gpuworkshop.lab.simulation import SimulatedNode
from gpuworkshop.processes import reaper


@pytest.fixture
def state(tmp_path: Path) -> Path:
    folder = tmp_path / "the state"
    folder.mkdir()
    return folder


@contextmanager
def _process(state: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, kubelet_process.__file__, str(state)], stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            yield process
        finally:
            process.kill()


def _ends(pid: int, within_s: float = 20.0) -> bool:
    """Whether the process ends in time."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(pid)
        ended, _, _ = select.select([handle], [], [], within_s)
        os.close(handle)
        return bool(ended)
    return True


def _none_is_left(state: Path) -> bool:
    """Whether all processes of the lab's pods end in time, also those that come while others end."""
    deadline = time.monotonic() + 20.0
    while left := leftovers.marked(_mark(state)):
        if not _ends(left[0], max(0.0, deadline - time.monotonic())):
            return False
    return True


def _cleared(state: Path) -> int:
    """The process of the stubborn pod that carries no mark."""
    (note,) = (state / "lab" / "pods").glob("*/main/rootfs/cleared")
    return int(note.read_text())


def _mark(state: Path) -> str:
    return f"{MARK}={state.resolve()}"


def test_killed_lab_leaves_no_process_and_its_pods_go_on(state: Path) -> None:
    with _process(state) as process:
        left = leftovers.marked(_mark(state))
        assert len(left) >= 3
        found = {process.pid for process in reaper.find(state)}
        assert len(found) >= 3
        assert all(_ends(pid) for pid in set(left) - found), "what ./stop.sh does not find is about to end"
        cleared = _cleared(state)
        assert cleared not in left
        process.kill()
        process.wait()
        assert _ends(cleared)
        assert _none_is_left(state)
    asyncio.run(_goes_on(state))
    assert leftovers.marked(_mark(state)) == []


async def _goes_on(state: Path) -> None:
    lab = KubeletLab(state, database=str(state / "cluster.db"))
    before = {name: lab.get(name) for name in ("stubborn", "web")}
    uid = before["stubborn"]["metadata"]["uid"]
    node = SimulatedNode(state / "lab" / "nodes" / f"{NODE_NAME}.yaml")
    held = Devices(node, "A10G", 4).held_by(uid, "main")
    async with lab.running():

        def again() -> bool:
            (status,) = lab.get("stubborn")["status"]["containerStatuses"]
            return bool(status["restartCount"] == 1 and status["ready"])

        await lab.until(again)
        (status,) = lab.get("stubborn")["status"]["containerStatuses"]
        assert status["lastState"]["terminated"]["reason"] == "Unknown"
        assert Devices(node, "A10G", 4).held_by(uid, "main") == held != []
        assert await lab.log("stubborn", previous=True) == b"up\n"
        (paused,) = (await lab.ready("web"))["status"]["containerStatuses"]
        assert paused == before["web"]["status"]["containerStatuses"][0]


def test_start_ends_what_is_left_even_if_the_shims_were_killed_too(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "GRACE_S", 0.2)
    stubborn = ["sh", "-c", kubelet_process.STUBBORN.replace(kubelet_process.CLEARED, "")]
    name, _, value = _mark(state).partition("=")
    with subprocess.Popen(
        stubborn, env={**os.environ, name: value}, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        left = leftovers.marked(_mark(state))
        assert process.pid in left

        async def begin() -> None:
            spawner = Spawner(state)
            await spawner.begin()
            await spawner.finish()

        asyncio.run(begin())
        process.wait()
        assert _none_is_left(state)


def test_graceful_end_leaves_the_pods_as_they_were(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "END_GRACE_S", 0.2)

    async def test() -> None:
        lab = KubeletLab(state)
        async with lab.running():
            lab.node()
            lab.pod(
                "app", {"name": "main", "image": "busybox", "args": ["sh", "-c", kubelet_process.STUBBORN]}
            )
            await lab.logged("app", b"up\n")
            cleared = _cleared(state)
        assert leftovers.marked(_mark(state)) == []
        with pytest.raises(ProcessLookupError):
            os.kill(cleared, 0)
        assert lab.get("app")["status"]["phase"] == "Running"
        async with lab.running():
            await lab.until(lambda: lab.get("app")["status"]["containerStatuses"][0]["restartCount"] == 1)

    asyncio.run(test())


def test_end_of_a_container_takes_along_what_it_has_started(state: Path) -> None:
    async def test() -> None:
        lab = KubeletLab(state)
        async with lab.running():
            lab.node()
            script = "trap '' TERM; setsid sleep 600 & echo $!"
            lab.pod(
                "app",
                {"name": "main", "image": "busybox", "args": ["sh", "-c", script]},
                restartPolicy="Never",
            )
            await lab.phase("app", "Succeeded")
            assert _ends(int(await lab.log("app")))

    asyncio.run(test())


def test_commands_end_with_the_pause_that_they_ran_in(state: Path) -> None:
    async def test() -> None:
        lab = KubeletLab(state)
        async with lab.running():
            lab.node()
            lab.pod("web", pause())
            await lab.ready("web")
            command = ["sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!"]
            begun = await lab.kubelets.execute(lab.get("web"), "main", command, stdin=False, tty=False)
            assert await begun.wait() == 0
            started = int(await begun.stdout.readline())
            async with asyncio.timeout(20):
                while started not in leftovers.marked(_mark(state)):
                    await asyncio.sleep(0.01)  # it is about to become another program
            lab.registry.delete(POD, "default", "web")
            await lab.gone("web")
            assert _ends(started)

    asyncio.run(test())
