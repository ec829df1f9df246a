"""How a process of a pod is started and ended, so that none is ever left behind.

Each has a shim (see `shim`), which holds all that it starts. It carries marks in its environment, which it
hands on: the reaper's, by which `./stop.sh` finds it; the lab's, by which the next start finds what is left
when shims were killed too; and its container's. Nothing else of this process's environment reaches it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakSet

from gpuworkshop.lab.kubelet import leftovers, shim
from gpuworkshop.lab.kubelet.pipes import Pipes
from gpuworkshop.lab.kubelet.shims import Shims
from gpuworkshop.processes import reaper

MARK = "GPUWORKSHOP_PODS"
CONTAINER_MARK = "GPUWORKSHOP_CONTAINER"
START_S = 20.0  # a shim takes milliseconds


@dataclass(frozen=True)
class Order:
    """A command to run in `folder`, its program an absolute path, in the container with the id `container`.

    What it leaves behind is killed when it ends, or if it `lingers`, when the container does.
    """

    command: Sequence[str]
    env: Mapping[str, str]
    folder: Path
    container: str
    lingers: bool = False


class Child:
    """A command and its streams; each is None where there is none, as for the errors on a terminal.

    `shim_id` is the process id of its shim, `control` the socket to that.
    """

    def __init__(
        self, pipes: Pipes, shim_id: int, control: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> None:
        self.stdin, self.stdout, self.stderr = pipes.stdin, pipes.stdout, pipes.stderr
        self._pipes, self._shim_id = pipes, shim_id
        self._reports, self._orders = control
        self._code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.gone = asyncio.create_task(self._follow())

    async def _follow(self) -> bool:
        """Until the shim has ended, and with it all that it held; False if it was killed before."""
        line = b""
        try:
            with suppress(OSError):
                line = await self._reports.readline()
                self._code.set_result(int(line or shim.KILLED))
                await self._reports.read()
        finally:
            if not self._code.done():
                self._code.set_result(shim.KILLED)
            for writer in (self._orders, self.stdin):
                if writer is not None:
                    writer.close()
        return bool(line)

    async def wait(self) -> int:
        """Wait for its end; the exit code as a container's, 128 + n after signal n."""
        return await asyncio.shield(self._code)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process alone, as a runtime does; nothing if it is gone."""
        if not self._code.done():
            self._orders.write(bytes([number]))

    def kill(self) -> None:
        """Kill it with all that it has started."""
        if not self._orders.is_closing():
            self._orders.write_eof()
            with suppress(ProcessLookupError):
                os.kill(self._shim_id, signal.SIGCONT)  # should somebody have stopped it

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of its terminal, if it has one."""
        self._pipes.resize(columns, rows)

    def close(self) -> None:
        """Close its streams, whoever else holds their other ends."""
        self._pipes.close()


class Spawner:
    """Starts processes marked as those of the lab in the state folder `state`, and ends what is left."""

    def __init__(self, state: Path) -> None:
        self._mark = f"{MARK}={state.resolve()}"
        self._marks = {
            reaper.MARK: str(state.resolve()),
            reaper.GROUP: os.environ.get(reaper.GROUP, "lab"),
            MARK: str(state.resolve()),
        }
        self._shims = Shims(self._marks)
        self._children: dict[str, set[Child]] = {}
        self._all = WeakSet[Child]()

    async def begin(self) -> None:
        """End what a killed predecessor has left."""
        await asyncio.to_thread(leftovers.end, self._mark, leftovers.GRACE_S)

    async def finish(self) -> None:
        """End whatever is left, and wait until it has."""
        await asyncio.gather(*map(self.end, list(self._children)))
        await self._shims.end()
        for child in self._all:
            child.close()

    async def end(self, container: str) -> None:
        """End whatever was started in a container and still runs."""
        children = self._children.pop(container, set())
        for child in children:
            child.kill()
        if not all(await asyncio.gather(*(asyncio.shield(child.gone) for child in children))):
            mark = f"{CONTAINER_MARK}={container}"
            await asyncio.to_thread(leftovers.end, mark)

    async def start(self, order: Order, *, stdin: bool = False, tty: bool = False) -> Child:
        """Start a command; with `tty` its streams are a terminal of its own, else pipes.

        Raises OSError when that is not possible.
        """
        env = {**({"TERM": "xterm"} if tty else {}), **order.env, **self._marks}
        words = _words(order.command, {**env, CONTAINER_MARK: order.container})
        flags = (["--terminal"] if tty else []) + (["--lingers"] if order.lingers else [])
        message = " ".join([str(len(words)), str(len(order.command)), *flags])
        siblings = self._children.setdefault(order.container, set())
        pipes = Pipes()
        try:
            await (pipes.open_terminal() if tty else pipes.open(stdin=stdin))
            shim_id, control = await self._start_shim(message, words, order.folder, pipes.theirs)
        except BaseException:
            pipes.close()
            raise
        finally:
            pipes.give()
        child = Child(pipes, shim_id, control)
        self._all.add(child)
        _keep(child, siblings)
        if self._children.get(order.container) is not siblings:  # the container has ended meanwhile
            child.kill()
            await asyncio.shield(child.gone)
        return child

    async def _start_shim(
        self, message: str, words: bytes, folder: Path, streams: Sequence[int]
    ) -> tuple[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """Its process id, and its control."""
        place = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        ours, theirs = socket.socketpair()
        try:
            reports, orders = await asyncio.open_connection(sock=ours)
            try:
                await self._shims.fork(message, [theirs.fileno(), place, *streams])
                theirs.close()
                orders.write(words)
                pid = await _process_id(reports)
            except BaseException:
                orders.close()
                raise
        finally:
            theirs.close()
            os.close(place)
        return pid, (reports, orders)


def _keep(child: Child, siblings: set[Child]) -> None:
    """Among its siblings, until its shim has ended in order; if that was killed, `end` has work to do."""
    siblings.add(child)

    def discard(gone: asyncio.Task[bool]) -> None:
        if not gone.cancelled() and gone.result():
            siblings.discard(child)

    child.gone.add_done_callback(discard)


async def _process_id(reports: asyncio.StreamReader) -> int:
    try:
        async with asyncio.timeout(START_S):
            line = await reports.readline()
    except TimeoutError as error:
        raise OSError(errno.ETIMEDOUT, f"it has not begun within {START_S:g} s") from error
    if not line:
        raise OSError(errno.EAGAIN, "there are too many processes")
    return int(line)


def _words(command: Sequence[str], env: Mapping[str, str]) -> bytes:
    """As the shim reads them. Raises OSError for what the kernel would not take."""
    words = [*command, *(f"{name}={value}" for name, value in env.items())]
    if any("\0" in word for word in words):
        raise OSError(errno.EINVAL, "an argument or a variable has a NUL character in it")
    try:
        return b"".join(os.fsencode(word) + b"\0" for word in words)
    except UnicodeEncodeError as error:
        raise OSError(errno.EILSEQ, "an argument or a variable is not Unicode text") from error


def find_program(name: str, path: str, folder: Path) -> str | None:
    """The absolute path of a program, by the container's own PATH; None if there is none."""
    places = [""] if "/" in name else path.split(":")
    for place in places:
        found = folder / place / name
        if found.is_file() and os.access(found, os.X_OK):
            return str(found)
    return None
