"""A container's standard streams: what it writes goes to its log, and to whoever is attached."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from gpuworkshop.lab.kubelet.logs import ContainerLog
from gpuworkshop.lab.kubelet.spawn import Child, Order, Spawner

DRAIN_S = 5.0
CHUNK = 65_536


class Stdio:
    """The streams of one life of a container. `stdin` is None unless the container asked for one."""

    def __init__(self, log: ContainerLog) -> None:
        self.log = log
        self.stdin: asyncio.StreamWriter | None = None
        self._attached: list[dict[str, asyncio.StreamReader]] = []
        self._child: Child | None = None
        self._pumps: list[asyncio.Task[None]] = []

    async def start(self, spawner: Spawner, order: Order, *, stdin: bool, tty: bool) -> Child:
        """Start the container's process with these streams."""
        process = await spawner.start(order, stdin=stdin, tty=tty)
        self.stdin = process.stdin
        streams = {"stdout": process.stdout, "stderr": process.stderr}
        readers = {name: reader for name, reader in streams.items() if reader is not None}
        self._child = process
        self._pumps = [asyncio.create_task(self._pump(*each)) for each in readers.items()]
        return process

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the container's terminal, if it has one."""
        if self._child is not None:
            self._child.resize(columns, rows)

    def attach(self) -> tuple[asyncio.StreamReader, asyncio.StreamReader]:
        """What comes from now on, on standard output and standard error."""
        readers = {"stdout": asyncio.StreamReader(), "stderr": asyncio.StreamReader()}
        self._attached.append(readers)
        return readers["stdout"], readers["stderr"]

    async def finish(self) -> None:
        """The process has ended: take what it has written to the end, and close all."""
        if self._pumps:
            _, late = await asyncio.wait(self._pumps, timeout=DRAIN_S)
            for pump in late:
                pump.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        if self.stdin is not None:
            self.stdin.close()
        if self._child is not None:
            self._child.close()
        self.log.close()
        for readers in self._attached:
            for reader in readers.values():
                reader.feed_eof()

    async def _pump(self, stream: str, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                self.log.write(stream, data)
                for readers in self._attached:
                    readers[stream].feed_data(data)
