"""How a process of a pod is started and ended, so that none is ever left behind.

Each leads a session of its own, is tethered to the lab's process (see `processes.tether`), and carries two
marks in its environment, which it hands on: the reaper's, by which `./stop.sh` finds it, and the lab's own,
by which `guard` finds what a killed lab has left. Nothing else of this process's environment reaches it.
"""

from __future__ import annotations

import asyncio
import os
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
CONTAINER_MARK = "GPUWORKSHOP_CONTAINER"
STREAM_LIMIT = 2**18


@dataclass(frozen=True)
class Terminal:
    """A pseudo-terminal: the end that the command gets, and the end that is read and written here."""

    inside: int
    outside: int


class Spawner:
    """Starts processes marked as those of the lab in the state folder `state`, and ends what is left."""

    def __init__(self, state: Path) -> None:
        self._mark = f"{MARK}={state.resolve()}"
        self._marks = {
            reaper.MARK: str(state.resolve()),
            reaper.GROUP: os.environ.get(reaper.GROUP, "lab"),
            MARK: str(state.resolve()),
        }
        self._guard: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """End what a killed predecessor has left, and start the guard. Only from the main thread."""
        guard.kill_marked(self._mark)
        self._guard = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__, self._mark],
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
    ) -> asyncio.subprocess.Process:
        """Start `command`, whose program is an absolute path, in `folder`; its output comes by pipes.

        With a terminal, all three streams are the terminal's inner end.
        """
        inner = terminal.inside if terminal else None
        if terminal:
            command = [sys.executable, "-I", "-S", ctty.__file__, *command]
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *command),
            stdin=inner or (asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL),
            stdout=inner or asyncio.subprocess.PIPE,
            stderr=inner or asyncio.subprocess.PIPE,
            env={**env, **self._marks},
            cwd=folder,
            start_new_session=True,
            limit=STREAM_LIMIT,
        )


def signal_group(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Send a signal to the process and what it has started in its group; nothing if they are gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def exit_code(returncode: int) -> int:
    """A process's code as a container's: 128 + n after signal n."""
    return 128 - returncode if returncode < 0 else returncode


def find_program(name: str, path: str, folder: Path) -> str | None:
    """The absolute path of a program, by the container's own PATH; None if there is none."""
    places = [""] if "/" in name else path.split(":")
    for place in places:
        found = folder / place / name
        if found.is_file() and os.access(found, os.X_OK):
            return str(found)
    return None
