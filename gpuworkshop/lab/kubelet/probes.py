"""Startup, readiness and liveness probes of a container that runs as a process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gpuworkshop.lab.kubelet.handlers import Asked, Failure, ask

QUICK_S = 1.0  # until it is ready for the first time, a container is asked this often


class Probed(Asked, Protocol):
    """What probes ask of a container, and tell it."""

    def probed(self, *, started: bool | None = None, ready: bool | None = None) -> None:
        """A probe has found out something new."""

    def unhealthy(self, message: str) -> None:
        """A probe has failed."""

    def fail(self, message: str) -> None:
        """Startup or liveness have failed too often: it is to be started anew."""


@dataclass(frozen=True)
class Pace:
    """When a probe is due, in seconds, and how many answers in a row count."""

    delay: float
    period: float
    timeout: float
    successes: int
    failures: int

    @classmethod
    def of(cls, probe: Mapping[str, Any]) -> Pace:
        """As the manifest has it."""
        return cls(
            float(probe.get("initialDelaySeconds") or 0),
            float(probe.get("periodSeconds") or 10),
            float(probe.get("timeoutSeconds") or 1),
            int(probe.get("successThreshold") or 1),
            int(probe.get("failureThreshold") or 3),
        )


async def watch(container: Probed) -> None:
    """Probe the container until cancelled."""
    spec = container.spec
    if startup := spec.get("startupProbe"):
        await _until_started(container, startup)
    container.probed(started=True, ready=None if spec.get("readinessProbe") else True)
    async with asyncio.TaskGroup() as group:
        if readiness := spec.get("readinessProbe"):
            group.create_task(_readiness(container, readiness))
        if liveness := spec.get("livenessProbe"):
            group.create_task(_liveness(container, liveness, "Liveness"))


async def _until_started(container: Probed, probe: Mapping[str, Any]) -> None:
    await _liveness(container, probe, "Startup", until_success=True)


async def _liveness(
    container: Probed, probe: Mapping[str, Any], name: str, *, until_success: bool = False
) -> None:
    pace, failed = Pace.of(probe), 0
    await asyncio.sleep(pace.delay)
    while True:
        if await _passes(container, probe, name, pace):
            if until_success:
                return
            failed = 0
        else:
            failed += 1
            if failed == pace.failures:
                container.fail(f"failed {name.lower()} probe")
        await asyncio.sleep(pace.period)


async def _readiness(container: Probed, probe: Mapping[str, Any]) -> None:
    pace, row, was_ready = Pace.of(probe), 0, False
    await asyncio.sleep(pace.delay)
    while True:
        passed = await _passes(container, probe, "Readiness", pace)
        row = (max(row, 0) + 1) if passed else (min(row, 0) - 1)
        if row >= pace.successes:
            was_ready = True
            container.probed(ready=True)
        elif row <= -pace.failures:
            container.probed(ready=False)
        await asyncio.sleep(pace.period if was_ready else min(pace.period, QUICK_S))


async def _passes(container: Probed, probe: Mapping[str, Any], name: str, pace: Pace) -> bool:
    try:
        await ask(container, probe, pace.timeout)
    except Failure as error:
        container.unhealthy(f"{name} probe failed: {error}")
        return False
    return True
