"""Pseudo-terminals as asyncio streams."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import struct
import termios

from gpuworkshop.lab.kubelet.spawn import Terminal


def open_terminal() -> Terminal:
    """A new pseudo-terminal; whoever starts the command closes the inner end then."""
    outside, inside = os.openpty()
    return Terminal(inside, outside)


def resize(outside: int, columns: int, rows: int) -> None:
    """Set the terminal's size; the command is told by SIGWINCH."""
    fcntl.ioctl(outside, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


async def streams(outside: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """What is shown on the terminal, and what is typed there. The streams take the handle over."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: _Protocol(reader), os.fdopen(os.dup(outside), "rb", buffering=0))
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(outside, "wb", buffering=0)
    )
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


class _Protocol(asyncio.StreamReaderProtocol):
    """Linux says EIO where a terminal ends, since no command has it open any more."""

    def connection_lost(self, exc: Exception | None) -> None:
        ended = isinstance(exc, OSError) and exc.errno == errno.EIO
        super().connection_lost(None if ended else exc)
