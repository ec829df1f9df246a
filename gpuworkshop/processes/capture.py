"""Runs a short-lived command to its end and hands back what it printed.

For pip, apt-get and `tool --version`. The command leads a process group of its own, which is ended with it
at a time-out or Ctrl-C, and is tethered (see `tether`), so that nothing of it outlives us.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gpuworkshop.errors import DiskFull, ToolError
from gpuworkshop.processes import tether


def run(
    command: Sequence[str | Path],
    limit_s: float,
    *,
    name: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """What `command` printed, standard output first. `env` comes on top of our environment; `name` is what
    messages call the command.

    Raises ToolError when it fails or is not done within `limit_s` seconds, DiskFull when it says so.
    """
    name = name or Path(command[0]).name
    with subprocess.Popen(
        [sys.executable, "-I", "-S", tether.__file__, str(os.getpid()), *map(str, command)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, **(env or {})},
        cwd=cwd,
        start_new_session=True,
    ) as child:
        try:
            out, err = child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            raise ToolError(f"{name} did not finish within {limit_s:g} s") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    if child.returncode == 0:
        return out + err
    if "No space left on device" in err:
        raise DiskFull(
            f"{name} ran out of disk space",
            step="fetching a tool",
            todo="make room, then run the same command again",
        )
    raise ToolError(f"{name} failed with exit code {child.returncode}: {_gist(err or out)}")


def _gist(text: str) -> str:
    """The lines that say why: errors if any are marked so, else the last ones."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("ERROR:", "E:", "error:"))]
    return "; ".join((marked or lines)[-2:])[:300] or "it printed nothing"
