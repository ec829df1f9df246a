"""The real kubectl streams: commands with exit codes and standard input, forwarded ports, logs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator

import pytest
from streams_stage import LIMIT_S, LocalRuntime, echo, free_port, pod, serving, stage

from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.streams import feed

pytestmark = pytest.mark.real
MEGABYTE = 1_000_000


def test_exec_with_an_exit_code() -> None:
    async def main() -> None:
        async with stage() as server:
            code, out, errors = await server.kubectl(
                "exec", "web", "--", "sh", "-c", "echo out; echo err >&2; exit 3"
            )
            assert (code, out) == (3, b"out\n")
            assert errors == "err\ncommand terminated with exit code 3\n"
            assert await server.kubectl("exec", "web", "--", "true") == (0, b"", "")
            assert server.runtime.asked == [("main", False, False)] * 2

    asyncio.run(main())


def test_exec_carries_standard_input_to_its_end() -> None:
    sent = os.urandom(3 * MEGABYTE)

    async def main() -> None:
        async with stage() as server:
            assert await server.kubectl("exec", "-i", "web", "--", "cat", stdin=sent) == (0, sent, "")
            # A command that does not want all of it ends as it likes.
            code, out, _ = await server.kubectl("exec", "-i", "web", "--", "head", "-c", "4", stdin=sent)
            assert (code, out) == (0, sent[:4])

    asyncio.run(main())


def test_exec_in_a_container_that_is_not_there() -> None:
    async def main() -> None:
        async with stage() as server:
            code, _, errors = await server.kubectl("exec", "web", "-c", "side", "--", "true")
            assert (code, errors) == (
                1,
                "Error from server (BadRequest): container side is not valid for pod web\n",
            )
            assert server.runtime.begun == []

    asyncio.run(main())


def test_exec_in_a_container_that_does_not_run() -> None:
    waiting = pod("main")
    waiting["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": "ContainerCreating"}}

    async def main() -> None:
        async with stage(served=waiting) as server:
            code, _, errors = await server.kubectl("exec", "web", "--", "true")
            assert code == 1
            assert errors == 'Error from server (InternalError): container not found ("main")\n'
        # Nor where only the kubelet knows.
        async with stage(
            LocalRuntime(refusal=ApiError(500, "InternalError", "the sandbox is gone"))
        ) as server:
            assert await server.kubectl("exec", "web", "--", "true") == (
                1,
                b"",
                "error: the sandbox is gone\n",
            )

    asyncio.run(main())


def test_an_interrupted_exec_kills_the_command() -> None:
    async def main() -> None:
        async with stage() as server:
            process = await server.start("exec", "web", "--", "sh", "-c", "echo begun; sleep 1000")
            assert process.stdout is not None
            assert await process.stdout.readline() == b"begun\n"
            process.kill()
            (command,) = server.runtime.begun
            await asyncio.wait_for(command.killed.wait(), LIMIT_S)
            assert await command.wait() == 137
            await process.communicate()

    asyncio.run(main())


def test_an_interrupted_exec_kills_a_command_that_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PING_S", 0.05)

    async def main() -> None:
        async with stage() as server:
            process = await server.start("exec", "-i", "web", "--", "sh", "-c", "echo begun; sleep 1000")
            assert process.stdin is not None
            assert process.stdout is not None
            assert await process.stdout.readline() == b"begun\n"
            process.stdin.write(bytes(20 * MEGABYTE))
            with pytest.raises(TimeoutError):  # it is held back
                await asyncio.wait_for(process.stdin.drain(), 0.5)
            process.kill()
            (command,) = server.runtime.begun
            await asyncio.wait_for(command.killed.wait(), LIMIT_S)
            assert await command.wait() == 137
            await process.communicate()

    asyncio.run(main())


def test_attach_talks_to_the_container_itself() -> None:
    async def main() -> None:
        async with stage() as server:
            code, out, _ = await server.kubectl("attach", "-i", "web", stdin=b"hello\n")
            assert (code, out) == (0, b"at it\nhello\n")

    asyncio.run(main())


def test_spdy_is_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false")
    monkeypatch.setenv("KUBECTL_PORT_FORWARD_WEBSOCKETS", "false")

    async def main() -> None:
        async with stage() as server:
            for arguments in (("exec", "web", "--", "true"), ("port-forward", "web", ":80")):
                code, _, errors = await server.kubectl(*arguments)
                assert code == 1
                assert "unset KUBECTL_REMOTE_COMMAND_WEBSOCKETS" in errors

    asyncio.run(main())


async def exchange(port: int, sent: bytes) -> bytes:
    """Send it, end, and read to the end: both at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def send() -> None:
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    sending = asyncio.create_task(send())
    got = await asyncio.wait_for(reader.read(), LIMIT_S)
    await sending
    writer.close()
    return got


def test_port_forward_of_five_megabytes_each_way() -> None:
    sent = os.urandom(5 * MEGABYTE)

    async def main() -> None:
        async with stage() as server, serving(echo) as port, server.forwarded(port) as (local,):
            assert await exchange(local, sent) == sent

    asyncio.run(main())


def test_port_forward_of_several_connections_at_once() -> None:
    sent = [os.urandom(MEGABYTE + index) for index in range(8)]

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"other:" + await reader.read())

    async def main() -> None:
        async with (
            stage() as server,
            serving(echo) as port,
            serving(other) as second,
            server.forwarded(port, second) as (local, local_second),
        ):
            echoed = [exchange(local, each) for each in sent]
            answered = [exchange(local_second, each) for each in sent]
            got = await asyncio.gather(*echoed, *answered)
            assert got == [*sent, *(b"other:" + each for each in sent)]
            # One after another, too: a connection that ended leaves the others alone.
            for index in range(20):
                assert await exchange(local, b"%d" % index) == b"%d" % index

    asyncio.run(main())


def test_port_forward_passes_the_end_on_and_waits_for_the_answer() -> None:
    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"%d" % len(await reader.read()))

    async def main() -> None:
        async with stage() as server, serving(count) as port, server.forwarded(port) as (local,):
            assert await exchange(local, bytes(MEGABYTE)) == b"1000000"

    asyncio.run(main())


def test_port_forward_ends_with_the_pods_end() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"good bye")

    async def main() -> None:
        async with stage() as server, serving(greet) as port, server.forwarded(port) as (local,):
            for _ in range(3):
                reader, writer = await asyncio.open_connection("127.0.0.1", local)
                assert await asyncio.wait_for(reader.read(), LIMIT_S) == b"good bye"
                writer.close()

    asyncio.run(main())


def test_port_forward_to_a_port_where_nobody_listens() -> None:
    async def main() -> None:
        port = await free_port()
        async with stage() as server:
            process = await server.start("port-forward", "--address=127.0.0.1", "web", f":{port}")
            assert process.stdout is not None
            local = int((await process.stdout.readline()).split(b" -> ")[0].rsplit(b":", 1)[1])
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            assert await reader.read() == b""
            writer.close()
            _, errors = await asyncio.wait_for(process.communicate(), LIMIT_S)
            assert (
                f"error forwarding port {port} to pod web, uid : failed to connect to localhost:{port}"
                in str(errors)
            )
            assert f"dial tcp4 127.0.0.1:{port}: connect: connection refused" in str(errors)
            assert "error: lost connection to pod" in str(errors)

    asyncio.run(main())


def test_port_forward_holds_back_a_pod_whose_reader_is_slow() -> None:
    written = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        while True:
            writer.write(bytes(1 << 16))
            await asyncio.wait_for(writer.drain(), 1.0)
            written += 1 << 16

    held_back = asyncio.Event()

    async def flood_until_held(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await flood(reader, writer)
        except TimeoutError:
            held_back.set()

    async def main() -> None:
        async with stage() as server, serving(flood_until_held) as port, server.forwarded(port) as (local,):
            _, writer = await asyncio.open_connection("127.0.0.1", local, limit=1 << 16)
            await asyncio.wait_for(held_back.wait(), LIMIT_S)
            writer.close()

    asyncio.run(main())
    assert written < 100 * MEGABYTE


def test_port_forward_holds_back_a_client_whose_pod_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PING_S", 0.05)
    go_on = asyncio.Event()

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await go_on.wait()
        writer.write(b"%d" % len(await reader.read()))

    async def main() -> None:
        sent = bytes(60 * MEGABYTE)
        async with stage() as server, serving(slow) as port, server.forwarded(port) as (local,):
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            writer.write(sent)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(writer.drain(), 1.0)
            go_on.set()
            await writer.drain()
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(), LIMIT_S) == b"%d" % len(sent)
            writer.close()

    asyncio.run(main())


def test_the_pods_connections_end_with_kubectl() -> None:
    ended = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        assert await reader.read() == b""
        ended.set()

    async def main() -> None:
        async with stage() as server, serving(wait) as port:
            async with server.forwarded(port) as (local,):
                reader, writer = await asyncio.open_connection("127.0.0.1", local)
                assert await reader.readexactly(4) == b"here"
            await asyncio.wait_for(ended.wait(), LIMIT_S)
            writer.close()

    asyncio.run(main())


def test_logs_follow_until_the_reader_goes() -> None:
    more = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one\n"
        await more.wait()
        yield b"two\n"
        await asyncio.Event().wait()

    async def main() -> None:
        async with stage(LocalRuntime(pieces=pieces)) as server:
            process = await server.start("logs", "-f", "--tail=5", "web")
            assert process.stdout is not None
            assert await process.stdout.readline() == b"one\n"
            more.set()
            assert await process.stdout.readline() == b"two\n"
            process.kill()
            await asyncio.wait_for(server.runtime.log_closed.wait(), LIMIT_S)
            await process.communicate()
            (options,) = server.runtime.options
            assert (options.container, options.follow, options.tail_lines) == ("main", True, 5)

    asyncio.run(main())


def test_logs_that_can_not_be_read() -> None:
    why = 'container "main" in pod "web" is waiting to start: ContainerCreating'

    async def main() -> None:
        async with stage(LocalRuntime(refusal=ApiError(400, "BadRequest", why))) as server:
            assert await server.kubectl("logs", "web") == (1, b"", f"Error from server (BadRequest): {why}\n")

    asyncio.run(main())
