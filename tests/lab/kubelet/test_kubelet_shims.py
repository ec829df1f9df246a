"""What a container has started ends with it, however it has hidden itself."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from kubelet_lab import KubeletLab, in_lab, pause, shell, state_of, statuses
from kubelet_process import CLEARED
from kubelet_processes import parent_of, runs

from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.kubelet import shim


def test_process_without_mark_session_and_parent_ends_with_the_container() -> None:
    async def test(lab: KubeletLab) -> None:
        # Its parent ends at once, and so does the container's process.
        lab.pod("app", shell(f"({CLEARED}); cat cleared"), restartPolicy="Never")
        await lab.phase("app", "Succeeded")
        assert not runs(int(await lab.log("app")))

    in_lab(test)


def test_process_without_mark_ends_with_the_pause_that_it_was_started_in() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("web", pause())
        await lab.ready("web")
        quiet = CLEARED.replace("&", ">/dev/null 2>&1 &", 1)
        code, output, _ = await lab.execute("web", "sh", "-c", f"{quiet} cat cleared")
        assert code == 0
        assert runs(int(output)), "as in a real container, it outlives the command that has started it"
        lab.registry.delete(POD, "default", "web")
        await lab.gone("web")
        assert not runs(int(output))

    in_lab(test)


def test_two_hundred_processes_that_start_others_end() -> None:
    async def test(lab: KubeletLab) -> None:
        bomb = "f() { while :; do (setsid sleep 600 & sleep 0.01); done; }; for i in 1 2 3 4; do f & done; "
        lab.pod("bomb", shell(bomb + "sleep 1; echo grown; wait"), terminationGracePeriodSeconds=0)
        await lab.logged("bomb", b"grown\n")
        (main,) = [child for child in shim.descendants() if b"echo grown" in _command_line(child)][:1]
        started = shim.descendants()
        assert main in started
        assert len(started) > 100
        lab.registry.delete(POD, "default", "bomb", grace_period=0)
        await lab.gone("bomb")
        await lab.kubelets.stop()
        assert not [pid for pid in started if runs(pid) and b"sleep" in _command_line(pid)]

    in_lab(test)


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("who", ["process", "shim"])
def test_stopped_process_ends_too(who: str) -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("echo $$$$; exec sleep 600"))
        await lab.ready("app")
        pid = int(await _first_line(lab, "app"))
        os.kill(pid if who == "process" else parent_of(pid), signal.SIGSTOP)
        lab.registry.delete(POD, "default", "app", grace_period=1)
        await lab.gone("app")
        assert not runs(pid)

    in_lab(test)


async def _first_line(lab: KubeletLab, name: str) -> bytes:
    while not (log := await lab.log(name)):
        await asyncio.sleep(0.01)
    return log.splitlines()[0]


def test_killed_shim_is_an_end_of_the_container_and_leaves_nothing_marked() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("echo $$$$; setsid sleep 600 & echo $!; wait"))
        await lab.ready("app")
        while len(log := await lab.log("app")) < 4 or log.count(b"\n") < 2:
            await asyncio.sleep(0.01)
        main, child = map(int, log.split())
        os.kill(parent_of(main), signal.SIGKILL)
        await lab.until(lambda: statuses(lab.get("app"))[0].get("restartCount") == 1)
        assert statuses(lab.get("app"))[0]["lastState"]["terminated"]["exitCode"] == 137
        assert not runs(main)
        assert not runs(child)

    in_lab(test)


def test_killed_process_of_a_container_starts_again() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("echo $$$$; exec sleep 600"))
        await lab.ready("app")
        os.kill(int(await _first_line(lab, "app")), signal.SIGKILL)
        await lab.until(lambda: statuses(lab.get("app"))[0].get("restartCount") == 1)
        assert statuses(lab.get("app"))[0]["lastState"]["terminated"]["exitCode"] == 137

    in_lab(test)


def test_what_cannot_be_executed_says_so_as_a_real_container() -> None:
    async def test(lab: KubeletLab) -> None:
        script = "printf 'no program' > odd; chmod +x odd; exec sleep 600"
        lab.pod("app", shell(script))
        await lab.ready("app")
        async with asyncio.timeout(20):
            while (found := await lab.execute("app", "./odd"))[0] == 127:
                await asyncio.sleep(0.01)  # it is not there yet
        code, _, errors = found
        assert code == 255
        assert errors.endswith(b"/odd: exec format error\n")

    in_lab(test)


def test_words_that_the_kernel_does_not_take_are_a_start_error() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("true", args=["a\0b"]), restartPolicy="Never")
        over = state_of(await lab.phase("app", "Failed"))["terminated"]
        assert over["reason"] == "StartError"
        assert "an argument or a variable" in over["message"]

    in_lab(test)
