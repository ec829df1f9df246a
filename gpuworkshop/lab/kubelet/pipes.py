"""Pipes and terminals to a command: its ends as handles, the ends of here as asyncio streams."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import struct
import termios

STREAM_LIMIT = 2**18


class Pipes:
    """The streams to a command; each is None where there is nothing.

    `theirs` are its ends, for its standard streams in order, to be closed by `give` once it has them.
    """

    def __init__(self) -> None:
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self.theirs: list[int] = []
        self._transports: list[asyncio.BaseTransport] = []
        self._outside: int | None = None

    async def open(self, *, stdin: bool) -> None:
        """Open pipes; without `stdin` the command reads nothing there. Raises OSError."""
        if stdin:
            theirs, ours = os.pipe()
            self.theirs.append(theirs)
            self.stdin = await self._into(ours)
        else:
            self.theirs.append(os.open(os.devnull, os.O_RDONLY))
        self.stdout = await self._incoming()
        self.stderr = await self._incoming()

    async def open_terminal(self) -> None:
        """Open a pseudo-terminal, which is all three streams. Raises OSError."""
        outside, inside = os.openpty()
        self.theirs = [inside] * 3
        self._outside = outside
        self.stdin = await self._into(outside)
        self.stdout = await self._out_of(os.dup(outside))

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the terminal, if it is one; the command is told by SIGWINCH."""
        if self._outside is not None and self.stdin is not None and not self.stdin.is_closing():
            fcntl.ioctl(self._outside, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def _incoming(self) -> asyncio.StreamReader:
        ours, theirs = os.pipe()
        self.theirs.append(theirs)
        return await self._out_of(ours)

    async def _out_of(self, handle: int) -> asyncio.StreamReader:
        loop = asyncio.get_running_loop()
        stream = asyncio.StreamReader(STREAM_LIMIT)
        pipe = os.fdopen(handle, "rb", buffering=0)
        transport, _ = await loop.connect_read_pipe(lambda: _Protocol(stream), pipe)
        self._transports.append(transport)
        return stream

    async def _into(self, handle: int) -> asyncio.StreamWriter:
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(handle, "wb", buffering=0)
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
        )
        self._transports.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, loop)

    def give(self) -> None:
        """The command has its ends, or is never to have them."""
        for handle in set(self.theirs):
            os.close(handle)
        self.theirs.clear()

    def close(self) -> None:
        """Close the ends of here, whoever holds the others."""
        for transport in self._transports:
            transport.close()


class _Protocol(asyncio.StreamReaderProtocol):
    """Linux says EIO where a terminal ends, since no command has it open any more."""

    def connection_lost(self, exc: Exception | None) -> None:
        ended = isinstance(exc, OSError) and exc.errno == errno.EIO
        super().connection_lost(None if ended else exc)
