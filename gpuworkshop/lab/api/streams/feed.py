"""What a client sends, on its way to a process or a connection that may read slowly.

While too much is under way the client's websocket is not read, so that the client waits too. Nothing tells
then that the client has gone, so it is pinged: a ping to nobody fails.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from aiohttp import web

PIECES_UNDER_WAY = 32
PING_S = 5.0


class Feed:
    """A queue of bytes; one task puts them in, another pours them out."""

    def __init__(self, websocket: web.WebSocketResponse) -> None:
        self._websocket = websocket
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue(PIECES_UNDER_WAY)
        self._ended = False

    async def put(self, piece: bytes) -> None:
        """Add a piece, once there is room; ConnectionResetError where the client goes meanwhile."""
        while not self._ended:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PING_S if self._pieces.full() else None):
                    await self._pieces.put(piece)
                    return
            await self._websocket.ping()

    async def end(self) -> None:
        """That was all: what is put from now on is dropped."""
        await self.put(b"")
        self._ended = True

    def close(self) -> None:
        """Nobody pours it out any more."""
        self._ended = True
        while not self._pieces.empty():
            self._pieces.get_nowait()

    async def pour(
        self, writer: asyncio.StreamWriter, poured: Callable[[int], Awaitable[None]] | None = None
    ) -> None:
        """Write all of it, then the end; a reader that has gone loses the rest."""
        gone = False
        while piece := await self._pieces.get():
            if not gone:
                try:
                    writer.write(piece)
                    await writer.drain()
                except OSError:
                    gone = True
            if poured is not None:
                await poured(len(piece))
        with contextlib.suppress(OSError):
            if writer.can_write_eof():
                writer.write_eof()
            else:
                writer.close()
