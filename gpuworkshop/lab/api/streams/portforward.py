"""Port-forwarding to a pod, in both forms that clients use.

kubectl tunnels SPDY through a websocket (`tunnel`). The Python client asks for its ports in the query, and
gets two channels for each: 2n carries the connection, 2n + 1 says why there is none. Both begin with it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from struct import pack

from aiohttp import web

from gpuworkshop.lab.api.problems import bad_request
from gpuworkshop.lab.api.streams import tunnel
from gpuworkshop.lab.api.streams.feed import Feed
from gpuworkshop.lab.api.streams.relaying import Connect, relay
from gpuworkshop.lab.api.streams.websockets import messages, protocols_of, upgrade

CHANNELS = "v4.channel.k8s.io"


async def port_forward(request: web.Request, connect: Connect) -> web.StreamResponse:
    """Carry connections to the pod's ports until the client goes; the pod's name is in the request's path."""
    pod = request.path.rstrip("/").split("/")[-2]
    with contextlib.suppress(ConnectionResetError):
        if tunnel.PROTOCOL in protocols_of(request):
            websocket = await upgrade(request, [tunnel.PROTOCOL])
            await tunnel.Tunnel(websocket, connect, pod).run()
            return websocket
    # A request that is no websocket's is refused before its ports are looked at.
    ports = _ports(request) if CHANNELS in protocols_of(request) else []
    websocket = await upgrade(request, [CHANNELS, tunnel.PROTOCOL])
    with contextlib.suppress(ConnectionResetError):
        await _Channels(websocket, ports).run(connect, pod)
    return websocket


def _ports(request: web.Request) -> list[int]:
    texts = [text for value in request.query.getall("ports", []) for text in value.split(",")]
    if not texts:
        raise bad_request('query parameter "port" is required')
    for text in texts:
        if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 1 << 16):
            raise bad_request(f'unable to parse "{text}" as a port')
        if int(text) == 0:
            raise bad_request(f'port "{text}" must be > 0')
    return [int(text) for text in texts]


class _Channels:
    """The Python client's websocket."""

    def __init__(self, websocket: web.WebSocketResponse, ports: Sequence[int]) -> None:
        self._websocket = websocket
        self._channels = [_Channel(websocket, number, port) for number, port in enumerate(ports)]

    async def run(self, connect: Connect, pod: str) -> None:
        """Serve it until the client goes, or all connections have ended."""
        for channel in self._channels:
            await channel.begin()
        serving = asyncio.create_task(self._serve(connect, pod))
        listening = asyncio.create_task(self._listen())
        try:
            done, _ = await asyncio.wait({serving, listening}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            serving.cancel()
            listening.cancel()
            await asyncio.gather(serving, listening, return_exceptions=True)
        await self._websocket.close()

    async def _serve(self, connect: Connect, pod: str) -> None:
        async with asyncio.TaskGroup() as tasks:
            for channel in self._channels:
                tasks.create_task(relay(connect, pod, channel))

    async def _listen(self) -> None:
        async for payload in messages(self._websocket):
            number, error = divmod(payload[0], 2)
            if not error and number < len(self._channels):
                await self._channels[number].feed.put(payload[1:])


class _Channel:
    """One port's two channels, as the relay sees them."""

    def __init__(self, websocket: web.WebSocketResponse, number: int, port: int) -> None:
        self.port, self.feed = port, Feed(websocket)
        self._websocket = websocket
        self._data, self._error = bytes([2 * number]), bytes([2 * number + 1])

    async def begin(self) -> None:
        for channel in (self._data, self._error):
            await self._websocket.send_bytes(channel + pack("<H", self.port))

    async def send(self, data: bytes) -> None:
        await self._websocket.send_bytes(self._data + data)

    async def finish(self) -> None:
        await self.feed.end()  # a channel has no end of its own, so the client can't know that it may go on

    async def fail(self, message: str) -> None:
        await self._websocket.send_bytes(self._error + message.encode())

    async def consumed(self, count: int) -> None:
        """Its websocket alone holds the client back."""
