"""How a process of a pod is started and ended, so that none is ever left behind.

Each leads a session of its own, is tethered to the lab's process (see `processes.tether`), and carries marks
in its environment, which it hands on: the reaper's, by which `./stop.sh` finds it; the lab's, by which the
next start finds what is left; and one of this start alone, for its `guard`, which must not end what the next
start has begun meanwhile. Nothing else of this process's environment reaches it.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gpuworkshop.lab.kubelet import ctty, guard
from gpuworkshop.processes import reaper, tether

MARK = "GPUWORKSHOP_PODS"
RUN_MARK = "GPUWORKSHOP_RUN"
CONTAINER_MARK = "GPUWORKSHOP_CONTAINER"
STREAM_LIMIT = 2**18


@dataclass(frozen=True)
class Terminal:
    """A pseudo-terminal: the end that the command gets, and the end that is read and written here."""

    inside: int
    outside: int


class _Protocol(asyncio.subprocess.SubprocessStreamProtocol):
    """Tells of the end of the process itself; asyncio waits for that of its pipes, which others may hold."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited: asyncio.Future[None] = loop.create_future()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set_result(None)


class Child:
    """A process and its pipes; each is None where there is a terminal, or nothing."""

    def __init__(self, transport: asyncio.SubprocessTransport, protocol: _Protocol) -> None:
        self.pid = transport.get_pid()
        self.stdin, self.stdout, self.stderr = protocol.stdin, protocol.stdout, protocol.stderr
        self._transport, self._exited = transport, protocol.exited

    async def wait(self) -> int:
        """Wait for its end; the exit code as a container's, 128 + n after signal n."""
        await asyncio.shield(self._exited)
        code = self._transport.get_returncode() or 0
        return 128 - code if code < 0 else code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process alone, as a runtime does; nothing if it is gone."""
        if not self._exited.done():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it with what it has started in its group."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes, whoever else holds their other ends."""
        self._transport.close()


class Spawner:
    """Starts processes marked as those of the lab in the state folder `state`, and ends what is left."""

    def __init__(self, state: Path) -> None:
        self._mark = f"{MARK}={state.resolve()}"
        run = secrets.token_hex(8)
        self._run = f"{RUN_MARK}={run}"
        self._marks = {
            RUN_MARK: run,
            reaper.MARK: str(state.resolve()),
            reaper.GROUP: os.environ.get(reaper.GROUP, "lab"),
            MARK: str(state.resolve()),
        }
        self._guard: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """End what a killed predecessor has left, and start the guard. Only from the main thread."""
        guard.kill_marked(self._mark)
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, self._run],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            start_new_session=True,
        )

    async def finish(self) -> None:
        """Let the guard end whatever is left, and wait until it has."""
        if self._guard is None:
            return
        assert self._guard.stdin is not None  # noqa: S101 - it was started with a pipe
        self._guard.stdin.close()
        await asyncio.to_thread(self._guard.wait)
        self._guard = None

    async def start(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        folder: Path,
        *,
        stdin: bool = False,
        terminal: Terminal | None = None,
    ) -> Child:
        """Start `command`, whose program is an absolute path, in `folder`; its output comes by pipes.

        With a terminal, all three streams are the terminal's inner end.
        """
        inner = terminal.inside if terminal else None
        if terminal:
            command = [sys.executable, "-I", "-S", ctty.__file__, *command]
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(STREAM_LIMIT, loop),
            *(sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *command),
            stdin=inner or (asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL),
            stdout=inner or asyncio.subprocess.PIPE,
            stderr=inner or asyncio.subprocess.PIPE,
            env={**env, **self._marks},
            cwd=folder,
            start_new_session=True,
        )
        return Child(transport, protocol)


def find_program(name: str, path: str, folder: Path) -> str | None:
    """The absolute path of a program, by the container's own PATH; None if there is none."""
    places = [""] if "/" in name else path.split(":")
    for place in places:
        found = folder / place / name
        if found.is_file() and os.access(found, os.X_OK):
            return str(found)
    return None
