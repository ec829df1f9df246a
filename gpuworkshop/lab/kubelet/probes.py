"""Startup, readiness and liveness probes of a container that runs as a process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp

QUICK_S = 1.0  # until it is ready for the first time, a container is asked this often


class Probed(Protocol):
    """What probes ask of a container, and tell it."""

    spec: Mapping[str, Any]

    @property
    def address(self) -> str:
        """Where it listens."""

    async def probe_command(self, command: Sequence[str]) -> tuple[int, str]:
        """Run a command in the container: its exit code and what it printed."""

    def probed(self, *, started: bool | None = None, ready: bool | None = None) -> None:
        """A probe has found out something new."""

    def unhealthy(self, message: str) -> None:
        """A probe has failed."""

    def fail(self, message: str) -> None:
        """Startup or liveness have failed too often: it is to be started anew."""


class Failure(Exception):
    """Why a probe failed."""


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
        async with asyncio.timeout(pace.timeout):
            await _ask(container, probe)
    except TimeoutError:
        why = f"command timed out after {pace.timeout:g}s" if "exec" in probe else "context deadline exceeded"
    except Failure as error:
        why = str(error)
    except (OSError, aiohttp.ClientError) as error:
        why = str(error) or type(error).__name__
    else:
        return True
    container.unhealthy(f"{name} probe failed: {why}")
    return False


async def _ask(container: Probed, probe: Mapping[str, Any]) -> None:
    asked: dict[str, Callable[[Probed, Mapping[str, Any]], Awaitable[None]]] = {
        "httpGet": _http_get,
        "tcpSocket": _connect,
        "grpc": _connect,
        "exec": _command,
    }
    for key, ask in asked.items():
        if key in probe:
            await ask(container, probe[key])


async def _http_get(container: Probed, action: Mapping[str, Any]) -> None:
    scheme = str(action.get("scheme") or "HTTP").lower()
    where = f"{action.get('host') or container.address}:{port_of(container.spec, action['port'])}"
    url = f"{scheme}://{where}/{str(action.get('path') or '/').lstrip('/')}"
    headers = {each["name"]: each["value"] for each in action.get("httpHeaders") or []}
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers=headers, ssl=False, allow_redirects=False) as answer,
    ):
        if not 200 <= answer.status < 400:
            raise Failure(f"HTTP probe failed with statuscode: {answer.status}")


async def _connect(container: Probed, action: Mapping[str, Any]) -> None:
    port = port_of(container.spec, action["port"])
    _, writer = await asyncio.open_connection(action.get("host") or container.address, port)
    writer.close()


async def _command(container: Probed, action: Mapping[str, Any]) -> None:
    code, printed = await container.probe_command(action.get("command") or [])
    if code:
        raise Failure(printed.strip() or f"command ended with exit code {code}")


def port_of(spec: Mapping[str, Any], port: int | str) -> int:
    """A port by its number, or by its name in the container's list. Raises Failure for an unknown name."""
    if isinstance(port, int) or port.isdecimal():
        return int(port)
    for each in spec.get("ports") or []:
        if each.get("name") == port:
            return int(each["containerPort"])
    raise Failure(f"couldn't find port: {port}")
