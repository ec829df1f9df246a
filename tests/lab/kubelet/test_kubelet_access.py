"""Logs, commands in a container, attaching to it, and connections to its ports."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from kubelet_lab import KubeletLab, in_lab, pause, shell, statuses

from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.api.objects import seconds_of
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.runtime import LogOptions
from gpuworkshop.lab.kubelet.logs import ContainerLog


def test_both_streams_are_in_the_log_with_times() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("echo out; echo err >&2; printf unfinished"), restartPolicy="Never")
        await lab.phase("app", "Succeeded")
        assert sorted((await lab.log("app")).splitlines()) == [b"err", b"out", b"unfinished"]
        stamped = (await lab.log("app", timestamps=True)).splitlines()
        assert all(seconds_of(line.split()[0].decode()[:26] + "Z") for line in stamped)

    in_lab(test)


def test_tail_since_and_limit() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", shell("for i in 1 2 3 4 5; do echo $i; done"), restartPolicy="Never")
        await lab.phase("app", "Succeeded")
        assert await lab.log("app", tail_lines=2) == b"4\n5\n"
        assert await lab.log("app", tail_lines=0) == b""
        assert await lab.log("app", limit_bytes=3) == b"1\n2"
        assert await lab.log("app", since=lab.registry.now() + 60) == b""
        assert await lab.log("app", since=lab.registry.now() - 600) == b"1\n2\n3\n4\n5\n"

    in_lab(test)


def test_follow_begins_with_the_tail_and_ends_with_the_container() -> None:
    async def test(lab: KubeletLab) -> None:
        script = "echo a; echo b; until test -f go; do sleep 0.02; done; echo c"
        lab.pod("app", shell(script), restartPolicy="Never")
        await lab.logged("app", b"a\nb\n")
        followed = asyncio.create_task(lab.log("app", follow=True, tail_lines=1))
        assert (await lab.execute("app", "touch", "go"))[0] == 0
        assert await followed == b"b\nc\n"

    in_lab(test)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (LogOptions("nobody"), "container nobody is not valid for pod app"),
        (LogOptions("main", previous=True), 'previous terminated container "main" in pod "app" not found'),
        (LogOptions("main"), 'container "main" in pod "app" is waiting to start: CreateContainerConfigError'),
    ],
)
def test_log_that_there_is_not(options: LogOptions, words: str) -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("app", pause(envFrom=[{"configMapRef": {"name": "none"}}]))
        await lab.until(lambda: statuses(lab.get("app"))[0].get("state"))
        with pytest.raises(ApiError) as refused:
            [piece async for piece in lab.kubelets.log(lab.get("app"), options)]
        assert (refused.value.code, refused.value.message) == (400, words)

    in_lab(test)


def test_log_of_a_pause_is_empty_and_can_be_followed_to_its_end() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("web", pause())
        await lab.ready("web")
        assert await lab.log("web") == b""
        followed = asyncio.create_task(lab.log("web", follow=True))
        await asyncio.sleep(0)
        lab.registry.delete(POD, "default", "web")
        assert await followed == b""

    in_lab(test)


def test_long_lines_come_back_whole_and_large_logs_are_set_aside(tmp_path: Path) -> None:
    async def test() -> None:
        log = ContainerLog(tmp_path / "0.log", kept=100_000)
        log.write("stdout", b"x" * 50_000)
        log.write("stdout", b"y" * 10_000 + b"\n")
        assert (
            b"".join([piece async for piece in log.read(LogOptions("c"))])
            == b"x" * 50_000 + b"y" * 10_000 + b"\n"
        )
        reading = log.read(LogOptions("c", follow=True, tail_lines=0))
        first = asyncio.ensure_future(anext(reading))
        await asyncio.sleep(0)
        lines = [b"%06d" % number + b"." * 994 + b"\n" for number in range(150)]
        followed = b""
        for line in lines:
            log.write("stderr", line)
            followed += await (first if line is lines[0] else anext(reading))
        log.close()
        assert followed == b"".join(lines)
        assert [piece async for piece in reading] == []
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 250_000

    asyncio.run(test())


def test_tail_of_a_long_line_is_the_whole_line(tmp_path: Path) -> None:
    async def test() -> None:
        log = ContainerLog(tmp_path / "0.log")
        log.write("stdout", b"first\n" + b"z" * 40_000 + b"\n")
        tail = b"".join([piece async for piece in log.read(LogOptions("c", tail_lines=1))])
        assert tail == b"z" * 40_000 + b"\n"
        log.close()

    asyncio.run(test())


def test_commands_have_exit_codes_and_both_streams() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("web", pause())
        await lab.ready("web")
        assert await lab.execute("web", "sh", "-c", "echo out; echo err >&2; exit 9") == (
            9,
            b"out\n",
            b"err\n",
        )
        assert (await lab.execute("web", "sh", "-c", "kill -9 $$"))[0] == 137

    in_lab(test)


@pytest.mark.parametrize("program", ["no-such-program", "nvidia-smi"])
def test_command_that_is_not_there_is_refused_in_the_runtimes_words(program: str) -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("web", pause())
        await lab.ready("web")
        code, _, errors = await lab.execute("web", program)
        assert code == 127
        assert errors.decode() == (
            "OCI runtime exec failed: exec failed: unable to start container process: "
            f'exec: "{program}": executable file not found in $PATH: unknown\n'
        )

    in_lab(test)


def test_stdin_reaches_the_command() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("web", pause())
        await lab.ready("web")
        begun = await lab.kubelets.execute(lab.get("web"), "main", ["wc", "-c"], stdin=True, tty=False)
        assert begun.stdin is not None
        reading = asyncio.create_task(begun.stdout.read())
        begun.stdin.write(b"x" * 3_000_000)
        await begun.stdin.drain()
        begun.stdin.close()
        assert (await reading).strip() == b"3000000"
        assert await begun.wait() == 0

    in_lab(test)


def test_terminal_has_a_size_and_ctrl_c() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("web", pause())
        await lab.ready("web")
        # With flush, the kernel drops what is written between the signal and the end of its own work on it.
        script = "stty noflsh; trap 'stty size; exit 5' INT; echo ready; while :; do sleep 0.02; done"
        command = ["sh", "-c", script]
        begun = await lab.kubelets.execute(lab.get("web"), "main", command, stdin=True, tty=True)
        assert begun.stderr is None
        assert begun.stdin is not None
        assert await begun.stdout.readuntil(b"ready\r\n")
        begun.resize(132, 43)
        begun.stdin.write(b"\x03")
        assert b"43 132" in await begun.stdout.read()
        assert await begun.wait() == 5

    in_lab(test)


def test_kill_ends_a_command_with_its_children() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("web", pause())
        await lab.ready("web")
        command = ["sh", "-c", "sleep 600 & echo up; wait"]
        begun = await lab.kubelets.execute(lab.get("web"), "main", command, stdin=False, tty=False)
        await begun.stdout.readline()
        begun.kill()
        assert await begun.stdout.read() == b""  # the child held it open too
        assert await begun.wait() == 137

    in_lab(test)


def test_no_command_in_a_container_that_has_ended() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("job", shell("true"), restartPolicy="Never")
        await lab.phase("job", "Succeeded")
        with pytest.raises(ApiError, match='container not found \\("main"\\)'):
            await lab.execute("job", "true")

    in_lab(test)


def test_shell_with_a_terminal_can_be_attached_to() -> None:
    async def test(lab: KubeletLab) -> None:
        main = {"name": "main", "image": "busybox", "args": ["sh"], "stdin": True, "tty": True}
        lab.pod("box", main, restartPolicy="Never")
        await lab.ready("box")
        attached = await lab.kubelets.attach(lab.get("box"), "main", stdin=True, tty=True)
        assert attached.stdin is not None
        attached.stdin.write(b"echo $((6*7))\n")
        await attached.stdout.readuntil(b"42\r\n")
        attached.stdin.write(b"exit 3\n")
        assert await attached.wait() == 3
        await lab.phase("box", "Failed")

    in_lab(test)


def test_ports_of_a_pod_are_reached_at_its_own_address() -> None:
    async def test(lab: KubeletLab) -> None:
        main = {
            "name": "main",
            "image": "python:3.12-slim",
            "command": ["python", "-m", "http.server", "8000", "--bind", "$(POD_IP)"],
            "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
            "readinessProbe": {"httpGet": {"port": 8000}, "periodSeconds": 1},
        }
        for name in ("one", "two"):
            lab.pod(name, main)
        for name in ("one", "two"):
            await lab.ready(name)
            reader, writer = await lab.kubelets.connect(lab.get(name), 8000)
            writer.write(b"GET / HTTP/1.0\r\n\r\n")
            assert b"200 OK" in await reader.readline()
            await reader.read()
            writer.close()
        with pytest.raises(OSError, match=r"refused|Connect call failed"):
            await lab.kubelets.connect(lab.get("one"), 8001)

    in_lab(test)
