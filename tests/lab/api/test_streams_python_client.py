"""The Python client streams: commands over v5, and ports over channels."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from kubernetes import client
from kubernetes.stream import portforward, stream
from streams_stage import LIMIT_S, Stage, echo, free_port, pod, serving, stage

# The client leaves its websockets to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Its garbage goes while that is ignored."""
    yield
    gc.collect()


def api(server: Stage) -> Any:  # the client is untyped
    configuration = client.Configuration(host=server.url)
    return client.CoreV1Api(client.ApiClient(configuration))


def ask(work: Callable[[Any], Any], served: dict[str, Any] | None = None) -> Any:
    """Run the client, which blocks, beside the server."""

    async def main() -> Any:
        async with stage(served=served) as server:
            return await asyncio.wait_for(asyncio.to_thread(work, api(server)), LIMIT_S)

    return asyncio.run(main())


def execute(core: Any, *command: str, **options: Any) -> Any:
    options = {"stdout": True, "stderr": True, "stdin": False, "tty": False, **options}
    return stream(core.connect_get_namespaced_pod_exec, "web", "default", command=list(command), **options)


def test_a_command_and_what_it_says() -> None:
    assert ask(lambda core: execute(core, "sh", "-c", "echo out; echo err >&2")) in (
        "out\nerr\n",
        "err\nout\n",
    )


def test_a_command_with_input_and_an_exit_code() -> None:
    def work(core: Any) -> tuple[str, int]:
        session = execute(
            core, "sh", "-c", "read line; echo got $line; exit 4", stdin=True, _preload_content=False
        )
        session.write_stdin("ö text\n")
        session.run_forever(timeout=LIMIT_S)
        return session.read_stdout(), session.returncode

    assert ask(work) == ("got ö text\n", 4)


def test_input_that_is_closed() -> None:
    sent = os.urandom(2_000_000)

    def work(core: Any) -> tuple[bytes, int]:
        session = execute(core, "cat", stdin=True, _preload_content=False, binary=True)
        got = b""
        for start in range(0, len(sent), 100_000):
            session.write_stdin(sent[start : start + 100_000])
            session.update()
            got += session.read_stdout() if session.peek_stdout() else b""
        session.close_channel(0)
        session.run_forever(timeout=LIMIT_S)
        return got + session.read_stdout(), session.returncode

    assert ask(work) == (sent, 0)


def test_the_default_container_is_the_annotated_one_else_the_first() -> None:
    async def main(served: dict[str, Any]) -> str:
        async with stage(served=served) as server:
            await asyncio.to_thread(execute, api(server), "true")
            return server.runtime.asked[0][0]

    several = pod("a", "b")
    assert asyncio.run(main(several)) == "a"
    several["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "b"}
    assert asyncio.run(main(several)) == "b"
    several["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "gone"}
    assert asyncio.run(main(several)) == "a"


def test_a_refused_command_is_an_api_exception() -> None:
    with pytest.raises(client.ApiException, match="400"):
        ask(lambda core: execute(core, "true", stdout=False, stderr=False))


def test_leaving_a_session_kills_its_command() -> None:
    async def main() -> None:
        async with stage() as server:
            command = ("sh", "-c", "echo begun; sleep 1000")
            session = await asyncio.to_thread(execute, api(server), *command, _preload_content=False)
            assert await asyncio.to_thread(session.readline_stdout, LIMIT_S) == "begun"
            await asyncio.to_thread(session.close)
            (begun,) = server.runtime.begun
            await asyncio.wait_for(begun.killed.wait(), LIMIT_S)
            assert await begun.wait() == 137

    asyncio.run(main())


def forward(core: Any, *ports: int) -> Any:
    text = ",".join(map(str, ports))
    return portforward(core.connect_get_namespaced_pod_portforward, "web", "default", ports=text)


def read(connection: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size and (piece := connection.recv(1 << 16)):
        got += piece
    return bytes(got)


def test_two_forwarded_ports() -> None:
    sent = os.urandom(200_000)

    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readexactly(5)).upper())

    def work(core: Any, first: int, second: int) -> tuple[bytes, bytes, Any]:
        ports = forward(core, first, second)
        echoed, shouted = ports.socket(first), ports.socket(second)
        for connection in (echoed, shouted):
            connection.settimeout(LIMIT_S)
        shouted.sendall(b"hello")
        echoed.sendall(sent)
        got = read(shouted, 5), read(echoed, len(sent)), ports.error(first)
        echoed.close()
        shouted.close()
        return got

    async def main() -> Any:
        async with stage() as server, serving(echo) as first, serving(shout) as second:
            return await asyncio.to_thread(work, api(server), first, second)

    assert asyncio.run(main()) == (b"HELLO", sent, None)


def test_five_megabytes_each_way_and_the_end_of_the_pods_side() -> None:
    sent = os.urandom(5_000_000)

    async def turn_round(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got = await reader.readexactly(len(sent))
        writer.write(got[::-1])

    def work(core: Any, port: int) -> bytes:
        connection = forward(core, port).socket(port)
        connection.settimeout(LIMIT_S)
        connection.sendall(sent)
        return read(connection, len(sent) + 1)  # the end comes before the one byte more

    async def main() -> bytes:
        async with stage() as server, serving(turn_round) as port:
            return await asyncio.to_thread(work, api(server), port)

    assert asyncio.run(main()) == sent[::-1]


def test_a_forwarded_port_where_nobody_listens() -> None:
    def work(core: Any, port: int) -> tuple[bytes, str]:
        ports = forward(core, port)
        connection = ports.socket(port)
        connection.settimeout(LIMIT_S)
        return connection.recv(10), ports.error(port)

    async def main() -> None:
        port = await free_port()
        async with stage() as server:
            got, why = await asyncio.to_thread(work, api(server), port)
            assert got == b""
            assert why.startswith(f"error forwarding port {port} to pod web, uid : failed to connect")

    asyncio.run(main())


def test_the_log() -> None:
    async def main() -> str:
        async with stage() as server:

            async def pieces() -> Any:
                yield b"one\n"
                yield b"two\n"

            server.runtime.pieces = pieces
            text: str = await asyncio.to_thread(
                api(server).read_namespaced_pod_log, "web", "default", tail_lines=7
            )
            assert server.runtime.options[0].tail_lines == 7
            return text

    assert asyncio.run(main()) == "one\ntwo\n"


def test_the_end_of_a_command_is_a_status() -> None:
    def work(core: Any) -> Any:
        session = execute(core, "sh", "-c", "exit 9", _preload_content=False)
        session.run_forever(timeout=LIMIT_S)
        return yaml.safe_load(session.read_channel(3))

    status = ask(work)
    assert (status["status"], status["reason"]) == ("Failure", "NonZeroExitCode")
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "9"}]
