"""Commands that a learner runs in a container (exec), and the container's own streams (attach)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path

from gpuworkshop.lab.kubelet.spawn import Child, Order, Spawner, find_program
from gpuworkshop.lab.kubelet.stdio import Stdio

NOT_FOUND = 127
MOST_CAPTURED = 10_240  # bytes, as a real kubelet has it
# No container has these of its own; this machine's would tell of this machine.
NEVER_THE_MACHINES = ("nvidia-smi",)


class Command:
    """A process in a container."""

    def __init__(self, process: Child, tty: bool) -> None:
        self._process, self._tty = process, tty
        self.stdin = process.stdin
        self.stdout = process.stdout or asyncio.StreamReader()
        self.stderr: asyncio.StreamReader | None = process.stderr

    async def wait(self) -> int:
        """Its exit code, 128 + n after signal n."""
        code = await self._process.wait()
        if self._tty and self.stdin is not None:
            self.stdin.close()
        return code

    def resize(self, columns: int, rows: int) -> None:
        """Set the terminal's size."""
        self._process.resize(columns, rows)

    def kill(self) -> None:
        """End it with all that it has started."""
        self._process.kill()


class Refusal:
    """A command that is not there: the runtime's words on standard error, and an exit code."""

    def __init__(self, name: str, tty: bool) -> None:
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout, errors = asyncio.StreamReader(), asyncio.StreamReader()
        words = f"OCI runtime exec failed: exec failed: {not_found(name)}\n"
        (self.stdout if tty else errors).feed_data(words.encode())
        self.stdout.feed_eof()
        errors.feed_eof()
        self.stderr: asyncio.StreamReader | None = None if tty else errors

    async def wait(self) -> int:
        """The exit code."""
        return NOT_FOUND

    def resize(self, columns: int, rows: int) -> None:
        """There is nothing to resize."""

    def kill(self) -> None:
        """There is nothing to end."""


class Attachment:
    """The streams of the container's own process."""

    def __init__(self, stdio: Stdio, ended: asyncio.Task[int], *, stdin: bool, tty: bool) -> None:
        self.stdin = stdio.stdin if stdin else None
        self._stdio, self._ended = stdio, ended
        self.stdout, errors = stdio.attach()
        self.stderr: asyncio.StreamReader | None = None if tty else errors

    async def wait(self) -> int:
        """The exit code of the container."""
        return await asyncio.shield(self._ended)

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of the container's terminal, if it has one."""
        self._stdio.resize(columns, rows)

    def kill(self) -> None:
        """The container goes on."""


class Silence:
    """The streams of a pause: nothing, until it is stopped."""

    def __init__(self, stopped: Callable[[], Awaitable[None]]) -> None:
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout = asyncio.StreamReader()
        self.stderr: asyncio.StreamReader | None = None
        self._stopped = asyncio.create_task(self._until(stopped))

    async def _until(self, stopped: Callable[[], Awaitable[None]]) -> None:
        await stopped()
        self.stdout.feed_eof()

    async def wait(self) -> int:
        """The exit code of the pause."""
        await asyncio.shield(self._stopped)
        return 0

    def resize(self, columns: int, rows: int) -> None:
        """There is nothing to resize."""

    def kill(self) -> None:
        """Nobody listens any more."""
        self._stopped.cancel()


async def execute(spawner: Spawner, order: Order, *, stdin: bool, tty: bool) -> Command | Refusal:
    """Start a command in a container."""
    name, *arguments = order.command
    program = program_of(name, order.env, order.folder)
    if program is None:
        return Refusal(name, tty)
    order = replace(order, command=[program, *arguments])
    return Command(await spawner.start(order, stdin=stdin, tty=tty), tty)


async def captured(spawner: Spawner, order: Order) -> tuple[int, str]:
    """Run a command to its end: its exit code, and what it printed; killed when this is cancelled."""
    begun = await execute(spawner, order, stdin=False, tty=False)
    try:
        readers = [reader for reader in (begun.stdout, begun.stderr) if reader is not None]
        printed = await asyncio.gather(*map(_beginning, readers))
        return await begun.wait(), b"".join(printed).decode(errors="replace")
    except BaseException:
        begun.kill()
        raise


async def _beginning(reader: asyncio.StreamReader) -> bytes:
    """What comes first; the rest is read, since a full pipe would hold the command up, and forgotten."""
    kept = b""
    while data := await reader.read(MOST_CAPTURED):
        kept = (kept + data)[:MOST_CAPTURED]
    return kept


def program_of(name: str, env: Mapping[str, str], folder: Path) -> str | None:
    """The program that a container means; None where a real one would find none."""
    path = env.get("PATH", "")
    if Path(name).name in NEVER_THE_MACHINES:  # only the container's own, which is the first on its PATH
        path, name = path.partition(":")[0], Path(name).name
    return find_program(name, path, folder)


def not_found(name: str) -> str:
    """The runtime's words for a program that is not there."""
    why = f"stat {name}: no such file or directory" if "/" in name else "executable file not found in $PATH"
    return f'unable to start container process: exec: "{name}": {why}: unknown'
