"""Commands in a container, and the container's own streams, over a websocket with a channel for each.

The first byte of a message is its channel. Channel 3 ends it all with a Status, from which clients take the
exit code. v5 adds that the client can end a channel, as standard input needs it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError, bad_request
from gpuworkshop.lab.api.runtime import Execution, Runtime
from gpuworkshop.lab.api.streams import containers
from gpuworkshop.lab.api.streams.feed import Feed
from gpuworkshop.lab.api.streams.query import flag
from gpuworkshop.lab.api.streams.websockets import messages, upgrade

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
LARGEST_PIECE = 1 << 15


@dataclass(frozen=True)
class _Wanted:
    """The streams that the client asks for."""

    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool

    @classmethod
    def of(cls, request: web.Request) -> Self:
        """From the query; ApiError 400 where it asks for none."""
        stdin, stdout, stderr, tty = (
            flag(request.query, name) for name in ("stdin", "stdout", "stderr", "tty")
        )
        if not (stdin or stdout or stderr):
            raise bad_request("you must specify at least 1 of stdin, stdout, stderr")
        return cls(stdin, stdout, stderr and not tty, tty)


async def execute(request: web.Request, runtime: Runtime, pod: Object) -> web.StreamResponse:
    """Run the query's command; it is killed when the client goes away."""
    wanted, command = _Wanted.of(request), request.query.getall("command", [])
    if not command:
        raise bad_request("you must specify at least one command for the container")

    async def begin(container: str) -> Execution:
        return await runtime.execute(pod, container, command, stdin=wanted.stdin, tty=wanted.tty)

    return await _attend(request, pod, wanted, begin)


async def attach(request: web.Request, runtime: Runtime, pod: Object) -> web.StreamResponse:
    """Be at the streams of the container's own process, which goes on when the client goes away."""
    wanted = _Wanted.of(request)

    async def begin(container: str) -> Execution:
        return await runtime.attach(pod, container, stdin=wanted.stdin, tty=wanted.tty)

    return await _attend(request, pod, wanted, begin)


async def _attend(
    request: web.Request, pod: Object, wanted: _Wanted, begin: Callable[[str], Coroutine[Any, Any, Execution]]
) -> web.StreamResponse:
    asked = request.query.get("container", "")
    container = containers.named(pod, asked) if asked else containers.default(pod)
    containers.check_assigned(pod)
    containers.check_running(pod, container)
    websocket = await upgrade(request, PROTOCOLS)
    with contextlib.suppress(ConnectionResetError):
        client = _Client(websocket, wanted)
        await client.greet()
        try:
            execution = await _begun(begin(container))
        except ApiError as refusal:
            # kubectl takes an answer that is no websocket for a server that has none, and tries SPDY.
            status = refusal.status()
        else:
            status = exit_status(await client.attend(execution))
        await client.send(ERROR, json.dumps(status).encode())
        await websocket.close()
    return websocket


async def _begun(beginning: Coroutine[Any, Any, Execution]) -> Execution:
    """Wait for it in any case, so that a client that goes meanwhile leaves no command behind."""
    task = asyncio.create_task(beginning)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        with contextlib.suppress(ApiError):
            (await task).kill()
        raise


def exit_status(code: int) -> dict[str, Any]:
    """The Status with which a command ends."""
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


class _Client:
    """Whoever sits at the other end of the websocket."""

    def __init__(self, websocket: web.WebSocketResponse, wanted: _Wanted) -> None:
        self._websocket, self._wanted = websocket, wanted

    async def greet(self) -> None:
        """Say by an empty message that the streams are there."""
        first = STDOUT if self._wanted.stdout else STDERR if self._wanted.stderr else ERROR
        await self.send(first, b"")

    async def send(self, channel: int, data: bytes) -> None:
        """Send a piece in a channel; ConnectionResetError where the client has gone."""
        await self._websocket.send_bytes(bytes([channel]) + data)

    async def attend(self, execution: Execution) -> int:
        """Carry the streams to its end: its exit code. ConnectionResetError where the client goes first."""
        listening = asyncio.create_task(self._listen(execution))
        working = asyncio.create_task(self._work(execution))
        try:
            await asyncio.wait({listening, working}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            listening.result()
            raise ConnectionResetError
        finally:
            if not working.done():
                execution.kill()
            listening.cancel()
            working.cancel()
            await asyncio.gather(listening, working, return_exceptions=True)

    async def _work(self, execution: Execution) -> int:
        try:
            async with asyncio.TaskGroup() as pumps:
                pumps.create_task(self._pump(STDOUT, execution.stdout, self._wanted.stdout))
                if execution.stderr is not None:
                    pumps.create_task(self._pump(STDERR, execution.stderr, self._wanted.stderr))
        except* ConnectionResetError:
            execution.kill()
        return await execution.wait()

    async def _pump(self, channel: int, reader: asyncio.StreamReader, wanted: bool) -> None:
        while piece := await reader.read(LARGEST_PIECE):
            if wanted:
                await self.send(channel, piece)

    async def _listen(self, execution: Execution) -> None:
        feed = Feed(self._websocket)
        async with asyncio.TaskGroup() as tasks:
            pouring = tasks.create_task(self._pour(feed, execution.stdin))
            with contextlib.suppress(ConnectionResetError):
                async for payload in messages(self._websocket):
                    await self._hear(payload, feed, execution)
            pouring.cancel()

    async def _pour(self, feed: Feed, stdin: asyncio.StreamWriter | None) -> None:
        if stdin is None:
            feed.close()
        else:
            await feed.pour(stdin)

    async def _hear(self, payload: bytes, feed: Feed, execution: Execution) -> None:
        channel, data = payload[0], payload[1:]
        if channel == STDIN and data:
            await feed.put(data)
        # The end of what is typed is not the end of the terminal.
        elif channel == CLOSE and data[:1] == bytes([STDIN]) and not self._wanted.tty:
            await feed.end()
        elif channel == RESIZE:
            _resize(execution, data)


def _resize(execution: Execution, data: bytes) -> None:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        size = json.loads(data)
        execution.resize(int(size["Width"]), int(size["Height"]))
