"""How a supervisor tells whoever started it, once, how its start went: one JSON line through a pipe.

An inherited pipe rather than a file that is asked after: the starter wakes up at once, and learns by the
pipe's end when the supervisor has died without a word.
"""

from __future__ import annotations

import json
import os
import select
import time
from contextlib import suppress
from typing import Any

READY_FD = "GPUWORKSHOP_READY_FD"


class Announcer:
    """The supervisor's end; silent when nobody listens, as when it was started by hand."""

    def __init__(self) -> None:
        text = os.environ.pop(READY_FD, "")
        self._fd = int(text) if text else None

    def tell(self, message: dict[str, Any]) -> None:
        """Say `message`; whatever is said after it goes unheard."""
        if self._fd is None:
            return
        with suppress(OSError):  # the starter may have gone
            os.write(self._fd, json.dumps(message).encode() + b"\n")
        os.close(self._fd)
        self._fd = None


def listen(fd: int, deadline: float) -> dict[str, Any] | None:
    """The message that arrives on `fd`; None at the pipe's end. TimeoutError at `deadline` (monotonic)."""
    heard = b""
    while not heard.endswith(b"\n"):
        readable, _, _ = select.select([fd], [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            raise TimeoutError
        chunk = os.read(fd, 65536)
        if not chunk:
            return None
        heard += chunk
    message: dict[str, Any] = json.loads(heard)
    return message
