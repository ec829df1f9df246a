"""kubectl's port-forward: SPDY/3.1 inside a websocket, with two streams for each connection.

The error stream says why there is none, the data stream carries it; both name the port and a requestid.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from aiohttp import WSCloseCode, web

from gpuworkshop.lab.api.streams import spdy
from gpuworkshop.lab.api.streams.feed import Feed
from gpuworkshop.lab.api.streams.relaying import Connect, relay
from gpuworkshop.lab.api.streams.spdy_events import (
    DataReceived,
    Event,
    ProtocolError,
    StreamEnded,
    StreamOpened,
    StreamReset,
)
from gpuworkshop.lab.api.streams.websockets import messages

PROTOCOL = "SPDY/3.1+portforward.k8s.io"


class Tunnel:
    """One websocket, and all connections in it."""

    def __init__(self, websocket: web.WebSocketResponse, connect: Connect, pod: str) -> None:
        self.websocket, self.session = websocket, spdy.Session()
        self._connect, self._pod = connect, pod
        self._room = asyncio.Event()
        self._unpaired: dict[str, _Connection] = {}
        self._connections: dict[int, _Connection] = {}  # by their data streams
        self._tasks: dict[_Connection, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Serve it until the client goes; all its connections then end."""
        try:
            async for payload in messages(self.websocket):
                for event in self.session.receive(payload):
                    await self._handle(event)
                await self.flush()
        except ProtocolError:
            self.session.go_away(spdy.PROTOCOL_ERROR)
            await self.flush()
            await self.websocket.close(code=WSCloseCode.PROTOCOL_ERROR)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def flush(self) -> None:
        """Send what the session has to say."""
        if outgoing := self.session.take():
            await self.websocket.send_bytes(outgoing)

    async def send(self, stream: int, data: bytes) -> None:
        """Send bytes in a stream, as fast as the client takes them."""
        left = memoryview(data)
        while left:
            if room := self.session.room(stream):
                self.session.send(stream, left[:room])
                left = left[room:]
                await self.flush()
            else:
                self._room.clear()
                await self._room.wait()

    async def _handle(self, event: Event) -> None:
        match event:
            case StreamOpened():
                self._open(event.stream, event.headers)
            case DataReceived():
                await self._receive(event.stream, event.data)
            case StreamEnded() if event.stream in self._connections:
                await self._connections[event.stream].feed.end()
            case StreamReset():
                self._cancel(event.stream)
        self._room.set()

    async def _receive(self, stream: int, data: bytes) -> None:
        if stream in self._connections:
            await self._connections[stream].feed.put(data)
        else:  # of an error stream, or of a connection that has ended
            self.session.consumed(stream, len(data))

    def _open(self, stream: int, headers: Mapping[str, str]) -> None:
        request, port = headers.get("requestid", ""), headers.get("port", "")
        role = headers.get("streamtype", "")
        if not request or role not in ("error", "data") or not _is_port(port):
            return self.session.reset(stream, spdy.REFUSED_STREAM)
        connection = self._unpaired.setdefault(request, _Connection(self, int(port)))
        if role in connection.streams or connection.port != int(port):
            return self.session.reset(stream, spdy.REFUSED_STREAM)
        self.session.reply(stream)
        connection.streams[role] = stream
        if role == "data":
            self._connections[stream] = connection
        if len(connection.streams) == 2:
            del self._unpaired[request]
            self._tasks[connection] = asyncio.create_task(self._serve(connection))
        return None

    async def _serve(self, connection: _Connection) -> None:
        try:
            with contextlib.suppress(ConnectionResetError):
                await relay(self._connect, self._pod, connection)
        finally:
            del self._tasks[connection], self._connections[connection.streams["data"]]
            self.session.finish(connection.streams["data"])
            self.session.finish(connection.streams["error"])
            with contextlib.suppress(ConnectionResetError):
                await self.flush()

    def _cancel(self, stream: int) -> None:
        connection = self._connections.get(stream)
        if connection in self._tasks:
            self._tasks[connection].cancel()


class _Connection:
    """One connection's streams, as the relay sees them."""

    def __init__(self, tunnel: Tunnel, port: int) -> None:
        self.port, self.feed = port, Feed(tunnel.websocket)
        self.streams: dict[str, int] = {}
        self._tunnel = tunnel

    async def send(self, data: bytes) -> None:
        await self._tunnel.send(self.streams["data"], data)

    async def finish(self) -> None:
        self._tunnel.session.finish(self.streams["data"])
        await self._tunnel.flush()

    async def fail(self, message: str) -> None:
        await self._tunnel.send(self.streams["error"], message.encode())

    async def consumed(self, count: int) -> None:
        self._tunnel.session.consumed(self.streams["data"], count)
        await self._tunnel.flush()


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and 0 < int(text[:6]) < 1 << 16
