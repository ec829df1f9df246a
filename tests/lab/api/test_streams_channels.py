"""Websockets of Kubernetes by the letter: subprotocols, channels, what is refused, what a terminal says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType
from streams_stage import LIMIT_S, LocalRuntime, Stage, echo, pod, serving, stage

V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"
POD = "/api/v1/namespaces/default/pods/web"
Query = Mapping[str, str] | list[tuple[str, str]]


@asynccontextmanager
async def opened(
    server: Stage, subresource: str, query: Query, *protocols: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with (
        aiohttp.ClientSession(server.url) as session,
        session.ws_connect(f"{POD}/{subresource}", params=query, protocols=protocols) as websocket,
    ):
        yield websocket


async def answer(server: Stage, path: str, **headers: str) -> tuple[int, dict[str, Any]]:
    async with (
        aiohttp.ClientSession(server.url) as session,
        session.get(POD + path, headers=headers) as response,
    ):
        return response.status, await response.json()


async def said(websocket: aiohttp.ClientWebSocketResponse) -> dict[int, bytes]:
    """All that is said until the end, by its channel."""
    channels: dict[int, bytes] = {}
    async with asyncio.timeout(LIMIT_S):
        async for message in websocket:
            assert message.type is WSMsgType.BINARY
            channels[message.data[0]] = channels.get(message.data[0], b"") + message.data[1:]
    return channels


def command(*words: str, **flags: str) -> list[tuple[str, str]]:
    return [*(("command", word) for word in words), *({"stdout": "true", "stderr": "true"} | flags).items()]


@pytest.mark.parametrize("offered", [(V5, V4), (V4, V5), (V4,), ("v9.channel.k8s.io", V4)], ids=" ".join)
def test_the_first_subprotocol_that_both_know(offered: tuple[str, ...]) -> None:
    async def main() -> None:
        async with stage() as server, opened(server, "exec", command("echo", "hi"), *offered) as websocket:
            assert websocket.protocol == next(name for name in offered if name in (V4, V5))
            assert await said(websocket) == {1: b"hi\n", 3: b'{"metadata": {}, "status": "Success"}'}
            assert websocket.close_code == 1000

    asyncio.run(main())


def test_a_command_begins_with_an_empty_message() -> None:
    async def main() -> None:
        async with stage() as server:
            for flags, channel in (
                ({}, 1),
                ({"stdout": "false"}, 2),
                ({"stdout": "0", "stderr": "0", "stdin": "1"}, 3),
            ):
                async with opened(server, "exec", command("true", **flags), V5) as websocket:
                    assert await websocket.receive_bytes() == bytes([channel])

    asyncio.run(main())


def test_streams_that_were_not_asked_for_are_not_sent() -> None:
    async def main() -> None:
        shell = ("sh", "-c", "echo out; echo err >&2; exit 2")
        query = command(*shell, stderr="false")
        async with stage() as server, opened(server, "exec", query, V5) as websocket:
            found = await said(websocket)
            assert (found[1], 2 in found) == (b"out\n", False)
            status = json.loads(found[3])
            assert status["message"] == "command terminated with non-zero exit code: exit status 2"

    asyncio.run(main())


def test_only_v5_ends_standard_input_and_only_where_it_is_no_terminal() -> None:
    async def main() -> None:
        async with stage() as server:
            async with opened(server, "exec", command("cat", stdin="true"), V5) as websocket:
                await websocket.send_bytes(b"\0one ")
                await websocket.send_str("\0two")
                await websocket.send_bytes(b"")
                await websocket.send_bytes(b"\xff\x00")
                await websocket.send_bytes(b"\0too late")
                assert (await said(websocket))[1] == b"one two"
            ends_itself = command("sh", "-c", "read a; read b; echo $a-$b", stdin="true", tty="true")
            async with opened(server, "exec", ends_itself, V5) as websocket:
                await websocket.send_bytes(b"\0one\n")
                await websocket.send_bytes(b"\xff\x00")
                await websocket.send_bytes(b"\0two\n")
                found = await said(websocket)
                assert (found[1], 2 in found) == (b"one-two\n", False)
                assert server.runtime.asked[-1] == ("main", True, True)

    asyncio.run(main())


def test_a_terminal_has_a_size() -> None:
    async def main() -> None:
        async with stage() as server:
            query = command("sh", "-c", "read line", stdin="true", tty="true")
            async with opened(server, "exec", query, V5) as websocket:
                for size in ({"Width": 80, "Height": 24}, {"Width": 100, "Height": 30}):
                    await websocket.send_bytes(b"\x04" + json.dumps(size).encode())
                for nonsense in (b"{", b"[]", b'{"Width": 1}', b'{"Width": "a", "Height": 1}', b"\xff"):
                    await websocket.send_bytes(b"\x04" + nonsense)
                await websocket.send_bytes(b"\0\n")
                assert json.loads((await said(websocket))[3])["status"] == "Success"
                assert server.runtime.begun[0].sizes == [(80, 24), (100, 30)]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("path", "headers", "words"),
    [
        ("/exec?command=true&stdout=1", {}, "Upgrade request required"),
        (
            "/exec?command=true&stdout=1",
            {"Upgrade": "SPDY/3.1"},
            "the lab's API server streams over websockets",
        ),
        ("/exec?command=true", {}, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec?stdout=1", {}, "you must specify at least one command for the container"),
        ("/exec?command=true&stdout=1&container=x", {}, "container x is not valid for pod web"),
        ("/attach", {}, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/portforward", {}, "Upgrade request required"),
        ("/portforward?ports=80", {"Upgrade": "SPDY/3.1"}, "the lab's API server streams over websockets"),
        (
            "/portforward",
            {"Upgrade": "websocket", "Sec-WebSocket-Protocol": "x"},
            "unable to negotiate protocol",
        ),
        ("/portforward", {"Sec-WebSocket-Protocol": V4}, 'query parameter "port" is required'),
        ("/portforward?ports=80,x", {"Sec-WebSocket-Protocol": V4}, 'unable to parse "x" as a port'),
        ("/portforward?ports=70000", {"Sec-WebSocket-Protocol": V4}, 'unable to parse "70000" as a port'),
        ("/portforward?ports=0", {"Sec-WebSocket-Protocol": V4}, 'port "0" must be > 0'),
    ],
)
def test_what_is_refused_before_any_upgrade(path: str, headers: dict[str, str], words: str) -> None:
    async def main() -> None:
        async with stage() as server:
            code, status = await answer(server, path, **headers)
            assert (code, status["reason"]) == (400, "BadRequest")
            assert status["message"].startswith(words)

    asyncio.run(main())


def test_a_pod_without_a_node_runs_nothing() -> None:
    pending = pod("main")
    del pending["spec"]["nodeName"]

    async def main() -> None:
        async with stage(served=pending) as server:
            code, status = await answer(server, "/exec?command=true&stdout=1")
            assert (code, status["message"]) == (400, "pod web does not have a host assigned")

    asyncio.run(main())


def vanish(websocket: aiohttp.ClientWebSocketResponse) -> None:
    """Go without a good-bye."""
    connection = websocket._response.connection
    assert connection is not None
    assert connection.transport is not None
    connection.transport.abort()


async def killed(server: Stage) -> bool:
    (begun,) = server.runtime.begun
    await asyncio.wait_for(begun.killed.wait(), LIMIT_S)
    return await begun.wait() == 137


def test_a_client_that_vanishes_kills_its_command() -> None:
    async def main() -> None:
        query = command("sh", "-c", "while true; do echo on and on; done")
        async with stage() as server, opened(server, "exec", query, V5) as websocket:
            assert await websocket.receive_bytes() == b"\1"
            assert (await websocket.receive_bytes()).startswith(b"\1on")
            vanish(websocket)
            assert await killed(server)

    asyncio.run(main())


def test_a_client_that_vanishes_before_its_command_has_begun_leaves_none_behind() -> None:
    async def main() -> None:
        gate = asyncio.Event()
        async with stage(LocalRuntime(gate=gate)) as server:
            async with opened(server, "exec", command("sleep", "1000"), V5) as websocket:
                assert await websocket.receive_bytes() == b"\1"
                vanish(websocket)
            assert server.runtime.begun == []
            gate.set()
            while not server.runtime.begun:
                await asyncio.sleep(0)
            assert await killed(server)

    asyncio.run(main())


def test_each_forwarded_port_has_two_channels_that_begin_with_it() -> None:
    async def main() -> None:
        async with stage() as server, serving(echo) as first, serving(echo) as second:
            query = [("ports", f"{first}"), ("ports", f"{second}")]
            async with opened(server, "portforward", query, V4) as websocket:
                for channel, port in enumerate((first, first, second, second)):
                    assert await websocket.receive_bytes() == bytes([channel]) + port.to_bytes(2, "little")
                # Of channels that only the server uses, and of those that are none, nothing is heard.
                for channel in (1, 3, 4, 200):
                    await websocket.send_bytes(bytes([channel]) + b"lost")
                await websocket.send_bytes(b"\2hello")
                assert await websocket.receive_bytes() == b"\2hello"

    asyncio.run(main())
