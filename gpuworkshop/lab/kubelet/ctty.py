"""Makes the terminal on standard input the controlling one, then becomes a command.

Without it there is no job control and Ctrl-C reaches nobody. Run as `python -I -S ctty.py COMMAND …`, as the
leader of a session of its own; a program rather than `preexec_fn`, which is not safe beside threads.
"""

from __future__ import annotations

import fcntl
import os
import sys
import termios


def main(command: list[str]) -> None:
    """Become `command`, which has been looked up before."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.execvp(command[0], command)  # noqa: S606 - no shell is the point


if __name__ == "__main__":
    main(sys.argv[1:])
