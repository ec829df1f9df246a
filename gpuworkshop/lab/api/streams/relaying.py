"""Bytes both ways between a client's channel and a connection to a port of a pod."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.streams import dialing
from gpuworkshop.lab.api.streams.feed import Feed

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[int], Awaitable[Streams]]
LARGEST_PIECE = 1 << 16


class Channel(Protocol):
    """A client's end of one connection. Each method raises ConnectionResetError where the client has gone."""

    port: int
    feed: Feed

    async def send(self, data: bytes) -> None:
        """Send what the pod says, once the client has room for it."""

    async def finish(self) -> None:
        """The pod says no more."""

    async def fail(self, message: str) -> None:
        """There is no connection, and why."""

    async def consumed(self, count: int) -> None:
        """The pod has taken that many bytes."""


async def relay(connect: Connect, pod: str, channel: Channel) -> None:
    """Connect to the channel's port, and serve it until both ends have said all."""
    try:
        reader, writer = await connect(channel.port)
    except (OSError, ApiError) as error:
        channel.feed.close()
        await channel.fail(_refusal(error, pod, channel.port))
        return
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(channel.feed.pour(writer, channel.consumed))
            tasks.create_task(_download(reader, channel))
    except* ConnectionResetError:
        pass  # the client has gone, and the reader of its websocket knows it too
    finally:
        channel.feed.close()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _download(reader: asyncio.StreamReader, channel: Channel) -> None:
    while piece := await _read(reader):
        await channel.send(piece)
    await channel.finish()


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(LARGEST_PIECE)
    except OSError:  # the pod has reset the connection: it says no more
        return b""


def _refusal(error: OSError | ApiError, pod: str, port: int) -> str:
    if isinstance(error, ApiError):
        why = error.message
    else:
        reason = dialing.reason(error)
        why = (
            f'failed to connect to localhost:{port} inside namespace "{pod}", '
            f"IPv4: dial tcp4 127.0.0.1:{port}: connect: {reason} "
            f"IPv6 dial tcp6 [::1]:{port}: connect: {reason}"
        )
    return f"error forwarding port {port} to pod {pod}, uid : {why}"
