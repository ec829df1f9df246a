"""Finds and ends processes by a mark in their environment: what shims have left that were killed themselves.

A shim (see `shim`) takes along all that it holds. Only SIGKILL of the shim itself leaves something behind.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path

GRACE_S = 3.0  # shims of a lab that was killed are about to end what they hold
ROUNDS = 50  # a process may fork while it is being ended


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


def end(mark: str, grace_s: float = 0.0) -> None:
    """Wait up to `grace_s` seconds for them to end by themselves, then kill them."""
    deadline = time.monotonic() + grace_s
    while (left := marked(mark)) and (patience := deadline - time.monotonic()) > 0:
        _wait(left[0], patience)
    for _ in range(ROUNDS):
        if not left:
            return
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        _wait(left[0], 0.1)
        left = marked(mark)


def _wait(pid: int, within_s: float) -> None:
    with suppress(OSError):
        handle = os.pidfd_open(pid)
        try:
            select.select([handle], [], [], within_s)
        finally:
            os.close(handle)
