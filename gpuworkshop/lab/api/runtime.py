"""What the API server asks of the kubelets: logs, commands in a container, and connections to a pod."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuworkshop.lab.api.objects import Object


@dataclass(frozen=True)
class LogOptions:
    """The query of `/log`; None is no limit. Times are Unix seconds."""

    container: str
    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    since: float | None = None
    limit_bytes: int | None = None


class Execution(Protocol):
    """A command that runs in a container; `stdin` is None unless asked for, stderr is None on a terminal."""

    stdin: asyncio.StreamWriter | None
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader | None

    async def wait(self) -> int:
        """Wait for its end; the exit code, 128 + n after signal n."""

    def resize(self, columns: int, rows: int) -> None:
        """The learner's terminal has another size."""

    def kill(self) -> None:
        """End it, since nobody listens any more."""


class Runtime(Protocol):
    """All kubelets of the cluster. Each method raises ApiError with the words of the real kubelet."""

    def log(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """The container's log in pieces; with `follow` until the container ends."""

    async def execute(
        self, pod: Object, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> Execution:
        """Run a command in a container that runs."""

    async def attach(self, pod: Object, container: str, *, stdin: bool, tty: bool) -> Execution:
        """The streams of the container's own process, which goes on when nobody listens."""

    async def connect(self, pod: Object, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a port of the pod; raises OSError when nothing listens there."""
