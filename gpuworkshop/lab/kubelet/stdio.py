"""A container's standard streams: what it writes goes to its log, and to whoever is attached."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gpuworkshop.lab.kubelet import terminal
from gpuworkshop.lab.kubelet.logs import ContainerLog
from gpuworkshop.lab.kubelet.spawn import Child, Spawner, Terminal

DRAIN_S = 5.0
CHUNK = 65_536


class Stdio:
    """The streams of one life of a container. `stdin` is None unless the container asked for one."""

    def __init__(self, log: ContainerLog) -> None:
        self.log = log
        self.stdin: asyncio.StreamWriter | None = None
        self.outside: int | None = None
        self._attached: list[dict[str, asyncio.StreamReader]] = []
        self._child: Child | None = None
        self._pumps: list[asyncio.Task[None]] = []

    async def start(
        self,
        spawner: Spawner,
        command: Sequence[str],
        env: Mapping[str, str],
        folder: Path,
        *,
        stdin: bool,
        tty: bool,
    ) -> Child:
        """Start the container's process with these streams."""
        if tty:
            pair = terminal.open_terminal()
            process = await start_on(spawner, pair, command, env, folder)
            self.outside = pair.outside
            output, self.stdin = await terminal.streams(pair.outside)
            readers = {"stdout": output}
        else:
            process = await spawner.start(command, env, folder, stdin=stdin)
            self.stdin = process.stdin
            pipes = {"stdout": process.stdout, "stderr": process.stderr}
            readers = {stream: reader for stream, reader in pipes.items() if reader is not None}
        self._child = process
        self._pumps = [asyncio.create_task(self._pump(*each)) for each in readers.items()]
        return process

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


async def start_on(
    spawner: Spawner, pair: Terminal, command: Sequence[str], env: Mapping[str, str], folder: Path
) -> Child:
    """Start a command on the inner end of a terminal, which is closed here then."""
    try:
        return await spawner.start(command, {"TERM": "xterm", **env}, folder, terminal=pair)
    except BaseException:
        os.close(pair.outside)
        raise
    finally:
        os.close(pair.inside)
