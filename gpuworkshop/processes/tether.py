"""Ties a process's life to its parent's, then becomes that process.

Run by the supervisor as `python -I -S tether.py PARENT_PID COMMAND …`: the kernel sends SIGTERM to what
this becomes when the thread that started it ends, even by SIGKILL (PR_SET_PDEATHSIG, prctl(2)). A program
of its own rather than `preexec_fn`, which is not safe in a process with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Become `command`, tied to `parent`; exit code 127 when there is no such program."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        sys.exit("the supervisor ended before its service had started")
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr)
        sys.exit(127)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
