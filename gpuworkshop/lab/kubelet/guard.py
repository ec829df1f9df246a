"""Ends what pods leave behind when the lab's process is killed: one small process beside it.

The kernel ends the processes that the lab has started itself (see `processes.tether`), not what those have
started, nor one that ignores SIGTERM. This program waits until its standard input ends, which it does when
the lab's process ends, however that comes about, and then kills every process that carries the lab's mark
in its environment. It stands alone, so that it is small: `python -I -S guard.py NAME=VALUE`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

GRACE_S = 1.0  # the kernel has sent them SIGTERM already
ROUNDS = 50


def marked(mark: str) -> list[int]:
    """The processes with the line `NAME=VALUE` in their environment, this one left out."""
    wanted = os.fsencode(mark)
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = Path(entry.path, "environ").read_bytes()
        except OSError:
            continue
        if wanted in environment.split(b"\0"):
            found.append(int(entry.name))
    return found


def kill_marked(mark: str) -> int:
    """Kill them at once; how many there were."""
    found = marked(mark)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return len(found)


def main(mark: str) -> None:
    """Wait for the end of standard input, then leave nothing behind."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it has work to do just when others are told to end
    while os.read(0, 1024):
        pass
    deadline = time.monotonic() + GRACE_S
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    for _ in range(ROUNDS):  # a process may fork while it is being ended
        if not kill_marked(mark):
            return
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1])
