"""One life of a container that runs as a process: its streams, its end, and all that it has started."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from gpuworkshop.lab.kubelet.logs import ContainerLog
from gpuworkshop.lab.kubelet.spawn import Child, Order, Spawner
from gpuworkshop.lab.kubelet.stdio import Stdio

HOOK_EXTENSION_S = 2.0  # a process whose hook has used up the grace period still gets this long


class ContainerProcess:
    """The process of the container with the id `container`, whose log is the file `log`. Raises OSError."""

    def __init__(self, spawner: Spawner, container: str, log: Path) -> None:
        self.stdio = Stdio(ContainerLog(log))
        self._spawner, self._container = spawner, container
        self._child: Child | None = None
        self._kill: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[None] | None = None

    async def start(self, order: Order, *, stdin: bool, tty: bool) -> None:
        """Start it. Raises OSError when that is not possible; its log is closed then."""
        try:
            self._child = await self.stdio.start(self._spawner, order, stdin=stdin, tty=tty)
        except OSError:
            await self._spawner.end(self._container)
            await self.stdio.finish()
            raise

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if self._child is not None:
            self._child.signal(number)

    def end(self, grace_s: float, hook: Callable[[], Awaitable[None]] | None = None) -> None:
        """SIGTERM when the hook is over, SIGKILL `grace_s` seconds from now; again only to be quicker."""
        if self._child is None:
            return
        loop = asyncio.get_running_loop()
        if self._kill is not None:
            if self._kill.when() <= loop.time() + grace_s:
                return
            self._kill.cancel()
        elif grace_s > 0 and hook is None:
            self._child.signal(signal.SIGTERM)
        elif grace_s > 0 and hook is not None:
            self._asking = asyncio.create_task(self._ask(hook, grace_s))
            grace_s += HOOK_EXTENSION_S
        self._kill = loop.call_later(grace_s, self._child.kill)

    async def _ask(self, hook: Callable[[], Awaitable[None]], grace_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                await hook()
        self.signal(signal.SIGTERM)

    async def wait(self) -> int:
        """Its exit code, once it has ended and nothing of it is left."""
        assert self._child is not None  # noqa: S101 - it was started
        try:
            code = await self._child.wait()
        finally:
            self._child.kill()
            for planned in (self._kill, self._asking):
                if planned is not None:
                    planned.cancel()
        await self._spawner.end(self._container)
        await self.stdio.finish()
        return code
