"""Commands under their shims, without a cluster: how they start, what they inherit, how they end."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from kubelet_processes import an_order, lines, parent_of, runs

from gpuworkshop.lab.kubelet import leftovers, spawn
from gpuworkshop.lab.kubelet.spawn import MARK, Spawner


@pytest.mark.parametrize("word", ["a\0b", "\ud800"])
def test_words_that_the_kernel_does_not_take_are_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(OSError, match="an argument or a variable"):
        asyncio.run(Spawner(tmp_path).start(an_order(tmp_path, word)))


def test_lingering_command_reports_its_end_at_once_and_ends_with_the_container(tmp_path: Path) -> None:
    async def test() -> None:
        spawner = Spawner(tmp_path)
        child = await spawner.start(an_order(tmp_path, "sleep 600 >&- 2>&- & echo $!; exit 7", lingers=True))
        (pid,) = map(int, await lines(child, 1))
        assert await child.wait() == 7
        assert runs(pid)
        await spawner.end("c0ffee")
        assert not runs(pid)
        assert await child.gone
        await spawner.finish()

    asyncio.run(test())


def test_nothing_is_inherited_but_the_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")

    async def test() -> None:
        spawner = Spawner(tmp_path)
        child = await spawner.start(an_order(tmp_path, "ls /proc/self/fd | wc -l; env"))
        assert child.stdout is not None
        count, *variables = (await child.stdout.read()).decode().splitlines()
        assert int(count) == 4, "three streams, and the folder that ls reads"
        names = {line.split("=")[0] for line in variables}
        assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {
            "PATH",
            "GPUWORKSHOP_PODS",
            "GPUWORKSHOP_CONTAINER",
            "GPUWORKSHOP_SUPERVISED",
            "GPUWORKSHOP_GROUP",
        }
        await spawner.finish()

    asyncio.run(test())


def test_shim_that_is_told_to_end_takes_all_along(tmp_path: Path) -> None:
    async def test() -> None:
        spawner = Spawner(tmp_path)
        script = "trap '' TERM; env -i setsid sleep 600 & echo $! $$; while :; do sleep 0.1; done"
        child = await spawner.start(an_order(tmp_path, script))
        hidden, main = map(int, (await lines(child, 1))[0].split())
        os.kill(parent_of(main), signal.SIGTERM)  # as ./stop.sh does
        assert await child.wait() == 137
        assert await child.gone
        assert not runs(hidden)
        await spawner.finish()

    asyncio.run(test())


def test_killed_parent_of_the_shims_costs_no_container_and_is_started_anew(tmp_path: Path) -> None:
    async def test() -> None:
        spawner = Spawner(tmp_path)
        first = await spawner.start(an_order(tmp_path, "echo $$; read word; echo $word"), stdin=True)
        (main,) = map(int, await lines(first, 1))
        parent = parent_of(parent_of(main))
        os.kill(parent, signal.SIGKILL)
        os.waitid(os.P_PID, parent, os.WEXITED | os.WNOWAIT)
        second = await spawner.start(an_order(tmp_path, "echo second"))
        assert await lines(second, 1) == [b"second"]
        assert first.stdin is not None
        first.stdin.write(b"first\n")
        assert await lines(first, 1) == [b"first"]
        assert [await child.wait() for child in (first, second)] == [0, 0]
        await spawner.finish()

    asyncio.run(test())


def test_command_of_a_container_that_ends_meanwhile_is_killed(tmp_path: Path) -> None:
    async def test() -> None:
        spawner = Spawner(tmp_path)
        starting = asyncio.create_task(spawner.start(an_order(tmp_path, "echo $$; exec sleep 600")))
        await asyncio.sleep(0)  # it has begun
        await spawner.end("c0ffee")
        child = await starting
        assert await child.wait() == 137
        await spawner.finish()

    asyncio.run(test())


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize("also_ended", [False, True])
def test_start_that_is_given_up_leaves_nothing(tmp_path: Path, also_ended: bool, tty: bool) -> None:
    async def test() -> None:
        spawner = Spawner(tmp_path)
        for turns in range(25):  # cut at each of its steps
            order = an_order(tmp_path, "exec sleep 600")
            starting = asyncio.create_task(spawner.start(order, stdin=True, tty=tty))
            ending = asyncio.create_task(spawner.end("c0ffee")) if also_ended else None
            for _ in range(turns):
                await asyncio.sleep(0)
            starting.cancel()
            await asyncio.gather(starting, *filter(None, [ending]), return_exceptions=True)
        await spawner.finish()
        mark = f"{MARK}={tmp_path.resolve()}"
        await asyncio.to_thread(leftovers.end, mark, 10.0)
        assert leftovers.marked(mark) == []

    handles = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(test())
    assert len(list(Path("/proc/self/fd").iterdir())) == handles


def test_folder_that_is_gone_is_a_plain_error(tmp_path: Path) -> None:
    async def test() -> None:
        spawner = Spawner(tmp_path)
        with pytest.raises(FileNotFoundError):
            await spawner.start(an_order(tmp_path / "gone", "true"), stdin=True)
        await spawner.finish()

    asyncio.run(test())


def test_end_is_seen_however_short_the_command_is(tmp_path: Path) -> None:
    """A signal and the end that it brings about come together: neither may go unnoticed."""

    async def test() -> None:
        spawner = Spawner(tmp_path)
        async with asyncio.timeout(60):
            for _ in range(100):
                child = await spawner.start(an_order(tmp_path, "echo up; exec sleep 600"))
                await lines(child, 1)
                child.signal(signal.SIGTERM)
                assert await child.wait() == 143
        await spawner.finish()

    asyncio.run(test())


def test_two_starts_at_once_find_the_parent_of_the_shims_killed(tmp_path: Path) -> None:
    async def test() -> None:
        spawner = Spawner(tmp_path)
        first = await spawner.start(an_order(tmp_path, "echo $$; exec sleep 600"))
        (main,) = map(int, await lines(first, 1))
        parent = parent_of(parent_of(main))
        os.kill(parent, signal.SIGKILL)
        os.waitid(os.P_PID, parent, os.WEXITED | os.WNOWAIT)
        starts = (spawner.start(an_order(tmp_path, f"exit {code}")) for code in (3, 4))
        children = await asyncio.gather(*starts)
        assert [await child.wait() for child in children] == [3, 4]
        await spawner.finish()
        assert not runs(main)

    asyncio.run(test())


def test_start_that_takes_too_long_says_so_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        spawner = Spawner(tmp_path)
        first = await spawner.start(an_order(tmp_path, "echo $$; exec sleep 600"))
        (main,) = map(int, await lines(first, 1))
        parent = parent_of(parent_of(main))
        os.kill(parent, signal.SIGSTOP)
        with monkeypatch.context() as impatient:
            impatient.setattr(spawn, "START_S", 0.2)
            with pytest.raises(OSError, match=r"not begun within 0\.2 s"):
                await spawner.start(an_order(tmp_path, "exec sleep 600"))
        os.kill(parent, signal.SIGCONT)
        assert await (await spawner.start(an_order(tmp_path, "exit 5"))).wait() == 5
        await spawner.finish()
        await asyncio.to_thread(leftovers.end, f"{MARK}={tmp_path.resolve()}", 10.0)

    asyncio.run(test())
