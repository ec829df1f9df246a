"""The process that forks the shims (see `shim`): started when first needed, and anew if it was killed."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from gpuworkshop.lab.kubelet import shim


class Shims:
    """Has shims forked by a process with the variables `marks`, by which it is found."""

    def __init__(self, marks: Mapping[str, str]) -> None:
        self._marks = dict(marks)
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: socket.socket | None = None

    async def fork(self, message: str, handles: Sequence[int]) -> None:
        """Ask for a shim; it has the handles then, which can be closed here. Raises OSError."""
        for _ in range(2):
            if self._requests is None:
                self._requests = self._start()
            try:
                socket.send_fds(self._requests, [message.encode()], handles)
            except ConnectionError:  # somebody has killed it
                await self.end()
            else:
                return
        raise ConnectionError("the process that starts containers ends at once")

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", shim.__file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=self._marks,
                cwd="/",
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
        return ours

    async def end(self) -> None:
        """End the process; the shims go on."""
        requests, self._requests = self._requests, None
        process, self._process = self._process, None
        if requests is not None:
            requests.close()
        if process is not None:
            process.kill()
            await asyncio.to_thread(process.wait)
