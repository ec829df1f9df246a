"""One service and the life of its process: started with its output in a log, ended for good.

A child leads a process group of its own, so that what it starts in turn ends with it, and is tethered
(see `tether`), so that it does not outlive a supervisor that was killed.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from gpuworkshop.processes import tether

LOG_KEEPS = 5_000_000  # bytes
STARTS = "--- starting "


@dataclass(frozen=True)
class Service:
    """A process to keep running. Its output goes to `NAME.log` in the folder of logs.

    `url` is what a person or client opens; a GET of `health_url` with a status below 400 means healthy.
    `env` comes on top of the supervisor's environment.
    """

    name: str
    command: Sequence[str]
    url: str
    health_url: str
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    start_timeout_s: float = 30.0


async def start(service: Service, log: Path, marks: Mapping[str, str]) -> asyncio.subprocess.Process:
    """Start the service's process; `marks` are the variables by which the reaper knows it.

    Only from the main thread: the child's tether holds as long as the thread that starts it.
    """
    with open_log(log) as output:
        output.write(f"{STARTS}{service.name} at {datetime.now().astimezone():%F %T%z}\n".encode())
        output.flush()
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *service.command),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **service.env, **marks},
            cwd=service.cwd,
            start_new_session=True,
        )


async def end(child: asyncio.subprocess.Process, grace_s: float) -> None:
    """SIGTERM, and SIGKILL after `grace_s` seconds; then whatever is left of its process group."""
    with suppress(ProcessLookupError):
        child.terminate()
    try:
        async with asyncio.timeout(grace_s):
            await child.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def open_log(path: Path) -> BinaryIO:
    """Open a log for appending, cut to its last 5 MB; readable by its owner only, as logs hold tokens."""
    with suppress(FileNotFoundError):
        if path.stat().st_size > LOG_KEEPS:
            with path.open("r+b") as file:
                file.seek(-LOG_KEEPS, os.SEEK_END)
                kept = file.read()
                file.seek(0)
                file.write(kept[kept.find(b"\n") + 1 :])
                file.truncate()
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def last_lines(log: Path, count: int = 10) -> str:
    """The last lines that the service wrote since its last start; empty when it wrote none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 20_000))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = text.rpartition(STARTS)[2].splitlines()[1 if STARTS in text else 0 :]
    return "\n".join(lines[-count:])
