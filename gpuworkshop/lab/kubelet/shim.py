"""Holds a container's process, or a command in it, with all that it starts, as containerd's shim does.

Whatever is started below a shim stays below it, also when it leaves its session and clears its environment:
a shim is the subreaper of its descendants (PR_SET_CHILD_SUBREAPER, prctl(2)). The lab's process holds the
other end of its `control`, a socket. It sends the command there, and then signals for it, a byte each. When
that end closes, also by SIGKILL of the lab's process, every descendant is killed.

Run as `python -I -S shim.py REQUESTS`, it forks a shim for each message on that socket, so that a shim costs
neither the start of an interpreter nor its memory. A message is `SIZE WORDS [--terminal] [--lingers]`, with
five handles: control, folder and the standard streams. SIZE bytes come first on control, words that end with
NUL, of which the first WORDS are the command and the others its environment. Back come lines: the shim's
process id, and the exit code. What the command leaves behind is killed before that, or with --lingers stays
until the other end closes.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import socket
import sys
import termios
import time
from collections.abc import Iterable, Mapping, Sequence

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CANNOT_START, KILLED = 255, 128 + signal.SIGKILL
GRACE_S = 1.0  # from SIGTERM to a shim itself to SIGKILL for the command
ROUND_S = 0.05
GIVEN_UP_S = 5.0  # a descendant may run as another user, whom nobody here can end
OUR_OWN_END = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
LONGEST_MESSAGE, HANDLES = 1024, 5
_libc = ctypes.CDLL(None)


class Shim:
    """Holds what runs below this process; `control` is the socket to the lab's."""

    def __init__(self, control: int) -> None:
        self._control = control
        self._awake, told = os.pipe()
        os.set_blocking(self._awake, False)
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        for number in (*OUR_OWN_END, signal.SIGCHLD, signal.SIGALRM):
            signal.signal(number, lambda *_: None)
        self._codes: dict[int, int] = {}
        self._has_children = True

    def hold(self, command: int, lingers: bool) -> None:
        """Until nothing is left of what the process `command` is or has started."""
        reported = False
        while not reported or self._has_children:
            readable, _, _ = select.select([self._control, self._awake], [], [])
            told = set(self._told())  # before `_reap`, so that no end goes unnoticed between the two
            self._reap()
            if not self._goes_on(self._control in readable, told, command):
                self._end_all()
                self._codes.setdefault(command, KILLED)
            if command in self._codes and not reported:
                if not lingers:
                    self._end_all()
                self._report(self._codes[command])
                reported = True

    def _goes_on(self, is_asked: bool, told: set[int], command: int) -> bool:
        """Do what was asked for; False if all is to end."""
        signals: list[int] = []
        if is_asked:
            if not (asked := os.read(self._control, 64)):
                return False
            signals += asked
        if told & OUR_OWN_END:
            signal.setitimer(signal.ITIMER_REAL, GRACE_S)
            signals.append(signal.SIGTERM)
        if command not in self._codes:
            for number in signals:
                _send([command], number)
        return signal.SIGALRM not in told

    def _told(self) -> bytes:
        """The numbers of the signals to this process since the last time."""
        try:
            return os.read(self._awake, 4096)
        except BlockingIOError:
            return b""

    def _reap(self) -> None:
        try:
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                code = os.waitstatus_to_exitcode(ended[1])
                self._codes[ended[0]] = 128 - code if code < 0 else code
        except ChildProcessError:
            self._has_children = False

    def _end_all(self) -> None:
        """Kill every descendant. They are stopped first, so that none starts another meanwhile."""
        deadline = time.monotonic() + GIVEN_UP_S
        stopped: set[int] = set()
        while self._has_children and (left := descendants()) and time.monotonic() < deadline:
            if fresh := left - stopped:
                _send(fresh, signal.SIGSTOP)
                stopped |= fresh
            else:
                _send(left, signal.SIGKILL)
                select.select([self._awake], [], [], ROUND_S)
                self._told()
            self._reap()
        self._reap()
        self._has_children = False

    def _report(self, code: int) -> None:
        try:
            os.write(self._control, b"%d\n" % code)
        except OSError:
            return  # the lab's process is gone


def descendants() -> set[int]:
    """The processes below this one that have not ended."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            with open(f"{entry.path}/stat", "rb") as file:  # noqa: PTH123 - pathlib would be memory for nothing
                state, parent, *_ = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if state not in b"ZX":
            children.setdefault(int(parent), []).append(int(entry.name))
    found: set[int] = set()
    heads = [os.getpid()]
    while heads:
        below = children.pop(heads.pop(), [])
        found.update(below)
        heads += below
    return found


def _send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def _received(control: int, size: int) -> list[bytes]:
    """The words that come first; none if the other end closes before."""
    data = b""
    while len(data) < size:
        if not (piece := os.read(control, size - len(data))):
            return []
        data += piece
    return data.split(b"\0")[:-1]


def _started(command: Sequence[bytes], environment: Mapping[bytes, bytes], terminal: bool) -> int:
    """Start the command in a session of its own; its process id."""
    parent = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, OUR_OWN_END)  # one that comes now must not be lost
    if pid := os.fork():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, OUR_OWN_END)
        return pid
    try:
        os.setsid()
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if terminal:  # else there is no job control, and Ctrl-C reaches nobody
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        for number in (*OUR_OWN_END, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores the last two
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, OUR_OWN_END)
        if os.getppid() == parent:
            os.execve(command[0], list(command), environment)  # noqa: S606 - no shell is the point
    except OSError as error:
        os.write(2, b"exec %s: %s\n" % (command[0], (error.strerror or "").lower().encode()))
    finally:
        os._exit(CANNOT_START)


def _take(folder: int, streams: Sequence[int]) -> None:
    """Make the folder this process's, and the streams its standard ones."""
    os.fchdir(folder)
    for number, handle in enumerate(streams):
        os.dup2(handle, number)
    for handle in {folder, *streams}:
        os.close(handle)


def _let_go() -> None:
    """Leave the streams and the folder to the command: they end with it."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)
    os.chdir("/")


def run(message: Sequence[bytes], handles: Sequence[int]) -> None:
    """Be the shim of a command: start it, and hold it to its end."""
    (size, count), flags = map(int, message[:2]), message[2:]
    control, folder, *streams = handles
    os.setsid()
    os.set_inheritable(control, False)  # who holds it would seem to be this program
    os.write(control, b"%d\n" % os.getpid())
    _take(folder, streams)
    if not (words := _received(control, size)):
        return
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
    environment = dict(word.split(b"=", 1) for word in words[count:])
    shim = Shim(control)
    command = _started(words[:count], environment, b"--terminal" in flags)
    _let_go()
    shim.hold(command, b"--lingers" in flags)


def serve(requests: socket.socket) -> None:
    """Fork a shim for each request, until the other end closes."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a shim has ended
    while True:
        message, handles, _, _ = socket.recv_fds(requests, LONGEST_MESSAGE, HANDLES)
        if not message:
            return
        try:
            is_shim = not os.fork()
        except OSError:  # too many processes: the lab sees the end of control
            is_shim = False
        if is_shim:
            requests.close()
            run(message.split(), handles)
            return
        for handle in handles:
            os.close(handle)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
