"""Keeps one service running: started, watched, and started anew when it dies or hangs."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from gpuworkshop.processes import children, reaper
from gpuworkshop.processes.children import Service
from gpuworkshop.processes.failures import service_died
from gpuworkshop.processes.health import TIMEOUT_S, listening, trouble
from gpuworkshop.processes.state import ServiceStatus
from gpuworkshop.settings import Settings


@dataclass(frozen=True)
class Pace:
    """How fast a service is checked and started anew: seconds, and numbers of checks or deaths in a row."""

    check_starting: float = 0.1
    check_healthy: float = 2.0
    answer_within: float = TIMEOUT_S
    unhealthy_after: int = 3
    restart_after: int = 10
    give_up_after: int = 3
    back_off: float = 1.0
    back_off_limit: float = 30.0
    forgive_after: float = 60.0
    grace: float = 10.0

    def delay(self, deaths: int) -> float:
        """Seconds from the `deaths`-th death in a row to the next start: none, then doubling."""
        return 0.0 if deaths < 2 else min(self.back_off * 2.0 ** (deaths - 2), self.back_off_limit)


PACE = Pace()


class Keeper:
    """One service's task in the supervisor. `status` is how it is now; `changed` is called at each change."""

    def __init__(
        self,
        group: str,
        service: Service,
        settings: Settings,
        pace: Pace,
        changed: Callable[[], None],
    ) -> None:
        self.status = ServiceStatus(
            service.name, "starting", service.url, group=group, health_url=service.health_url
        )
        self.was_healthy = asyncio.Event()
        self._service = service
        self._log = settings.logs / f"{service.name}.log"
        self._marks = {reaper.MARK: str(settings.state), reaper.GROUP: group}
        self._pace = pace
        self._changed = changed
        self._deaths = 0
        self._retry = asyncio.Event()

    async def run(self) -> None:
        """Keep the service running until cancelled, which ends it.

        Raises ServiceDied (or PortInUse, DiskFull) when it dies again and again without ever being healthy.
        """
        try:
            while True:
                why = await self._live()
                self._deaths += 1
                if self._deaths >= self._pace.give_up_after and not self.was_healthy.is_set():
                    raise service_died(self._service.name, why, self._log)
                self._now(state="restarting", pid=None, detail=why)
                await self._back_off()
        finally:
            self._now(state="stopped", pid=None)

    def nudge(self) -> None:
        """Forget past deaths: start at once if the service waits for its next start."""
        self._deaths = 0
        self._retry.set()

    async def _live(self) -> str:
        """One life of the process, from its start to its end; returns why it ended."""
        if await asyncio.to_thread(listening, self._service.health_url):
            return f"finds its address already in use by another process: {self._service.health_url}"
        try:
            child = await children.start(self._service, self._log, self._marks)
        except OSError as error:
            return f"cannot be started: {error}"
        death = asyncio.create_task(child.wait())
        watch = asyncio.create_task(self._watch())
        try:
            self._now(pid=child.pid)
            await asyncio.wait({death, watch}, return_when=asyncio.FIRST_COMPLETED)
            return watch.result() if watch.done() else _how(death.result())
        finally:
            watch.cancel()
            await children.end(child, self._pace.grace)
            await asyncio.gather(death, watch, return_exceptions=True)

    async def _watch(self) -> str:
        """Follow the service's health; returns what was seen when it has to be started anew."""
        pace, url = self._pace, self._service.health_url
        begun = time.monotonic()
        while seen := await asyncio.to_thread(trouble, url, pace.answer_within):
            if time.monotonic() - begun > self._service.start_timeout_s:
                return f"was not healthy within {self._service.start_timeout_s:g} s: {seen}"
            await asyncio.sleep(pace.check_starting)
        begun, misses = time.monotonic(), 0
        while misses < pace.restart_after:
            misses = misses + 1 if seen else 0
            if misses >= pace.unhealthy_after:
                self._now(state="unhealthy", detail=seen)
            elif not misses:
                self._now(state="healthy", detail="")
                self.was_healthy.set()
                if time.monotonic() - begun > pace.forgive_after:
                    self._deaths = 0
            await asyncio.sleep(pace.check_healthy)
            seen = await asyncio.to_thread(trouble, url, pace.answer_within)
        return f"hung: {seen}"

    async def _back_off(self) -> None:
        self._retry.clear()
        with suppress(TimeoutError):
            # not wait_for, which in Python 3.11 forgets a cancellation that comes along with the event
            async with asyncio.timeout(self._pace.delay(self._deaths)):
                await self._retry.wait()

    def _now(self, **changes: Any) -> None:
        status = replace(self.status, **changes)
        if status != self.status:
            self.status = status
            self._changed()


def _how(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
