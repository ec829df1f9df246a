"""Ends every process that the workshop supervises, whatever state the rest is in.

A supervisor may have been killed, the virtual environment may be broken and the state files may be gone,
so this file stands alone: the standard library only, Python 3.8 or newer, run by any interpreter as
`python3 -I reaper.py STATE_DIR`. It believes nothing but /proc: whatever the workshop starts carries
`GPUWORKSHOP_SUPERVISED=<state folder>` in its environment, and hands it on to what it starts in turn.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK = "GPUWORKSHOP_SUPERVISED"
GROUP = "GPUWORKSHOP_GROUP"
SUPERVISOR_GRACE_S = 20.0  # a supervisor ends its children one after the other
GRACE_S = 3.0
ROUNDS = 5  # a process may fork while it is being ended


class Process(NamedTuple):
    """A process that a recycled pid cannot pass for: `born` is its start in clock ticks after boot."""

    pid: int
    born: int


def born(pid: int) -> int | None:
    """Start of process `pid` in clock ticks after boot; None when it is gone or a zombie (proc(5))."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in b"ZX" else int(fields[19])


def alive(process: Process) -> bool:
    """Whether this very process still runs."""
    return born(process.pid) == process.born


def find(state: Path, group: str = "") -> list[Process]:
    """The processes marked with the folder `state` (of one `group`), this one and its parent left out."""
    wanted = {f"{MARK}={state.resolve()}"} | ({f"{GROUP}={group}"} if group else set())
    marks = {os.fsencode(mark) for mark in wanted}
    mine = (os.getpid(), os.getppid())
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in mine:
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        start = born(int(entry.name))
        if start is not None and marks <= set(environment):
            found.append(Process(int(entry.name), start))
    return found


def supervisors(state: Path, group: str = "") -> list[Process]:
    """The supervisors (of one `group`) that the state files name and that still run, marked or not."""
    files = sorted((state / "run").glob(f"{group or '*'}.json"))
    return [process for file in files for process in _recorded(file) if alive(process)]


def reap(state: Path, group: str = "") -> list[Process]:
    """End all supervisors (of one `group`), then what `find` finds: SIGTERM, then SIGKILL.

    Returns what was ended.
    """
    first = supervisors(state, group)
    ended = dict.fromkeys([*first, *find(state, group)])
    _end(first, SUPERVISOR_GRACE_S)
    for _ in range(ROUNDS):
        found = find(state, group)
        if not found:
            break
        ended.update(dict.fromkeys(found))
        _end(found, GRACE_S)
    return [process for process in ended if not alive(process)]


def _recorded(file: Path) -> Iterator[Process]:
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        yield Process(int(record["pid"]), int(record["born"]))
    except (OSError, ValueError, KeyError, TypeError):
        return


def _end(processes: list[Process], grace_s: float) -> None:
    _signal(processes, signal.SIGTERM)
    if not _gone(processes, grace_s):
        _signal(processes, signal.SIGKILL)
        _gone(processes, GRACE_S)


def _signal(processes: list[Process], number: int) -> None:
    for process in processes:
        if alive(process):
            try:
                os.kill(process.pid, number)
            except OSError as error:
                print(f"cannot end process {process.pid}: {error.strerror}", file=sys.stderr)


def _gone(processes: list[Process], within_s: float) -> bool:
    """Wait until none is alive. Polls: only a parent is told of a process's end."""
    deadline = time.monotonic() + within_s
    while any(alive(process) for process in processes):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def main(arguments: list[str]) -> int:
    """Reap the folder named on the command line; exit code 1 when something would not end."""
    if len(arguments) != 1:
        print("usage: reaper.py STATE_DIR", file=sys.stderr)
        return 2
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the terminal may belong to the JupyterLab that ends here
    state = Path(arguments[0]).resolve()
    ended = reap(state)
    left = find(state)
    print(f"ended {len(ended)} process{'' if len(ended) == 1 else 'es'}" if ended else "nothing was running")
    for process in left:
        print(f"process {process.pid} does not end", file=sys.stderr)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
