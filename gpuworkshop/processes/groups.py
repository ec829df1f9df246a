"""The door to everything that the workshop keeps running: ensure, status, restart, stop.

A group of services has a detached supervisor of its own, so that it outlives the shell, notebook or test
that asked for it. Nothing here holds a connection to it: its state file says what it does, /proc and the
services' health addresses say whether that is still so, and signals ask it for more.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from gpuworkshop.errors import DiskFull, ServiceError, StartTimeout
from gpuworkshop.processes import reaper, state
from gpuworkshop.processes.children import last_lines
from gpuworkshop.processes.failures import quoted
from gpuworkshop.processes.health import no_room, trouble
from gpuworkshop.processes.launch import launch
from gpuworkshop.processes.reaper import Process, alive, born
from gpuworkshop.processes.state import GroupState, ServiceStatus
from gpuworkshop.settings import Settings

__all__ = ["ServiceStatus", "ensure", "restart", "status", "status_of", "stop", "stop_group"]

# What is shown as stopped before a group has run for the first time.
SERVICES = {"lab": ("cluster", "prometheus"), "jupyterlab": ("jupyterlab",)}
POLL_S = 0.1
TERM_GRACE_S = 10.0


def ensure(
    group: str, settings: Settings, timeout_s: float = 60.0, command: Sequence[str] = ()
) -> list[ServiceStatus]:
    """Have all services of `group` healthy, starting its supervisor if there is none; returns how they are.

    `command` runs the supervisor, `gpuworkshop supervise GROUP` if it is not given. May be called by several
    at once: one starts it, all return when it is healthy. Raises ServiceDied, PortInUse or DiskFull with the
    last lines of the log when a service dies at each start, StartTimeout after `timeout_s` seconds, and what
    the listing of the services raised.
    """
    command = command or (sys.executable, "-m", "gpuworkshop", "supervise", group)
    settings.state.mkdir(parents=True, exist_ok=True)
    if full := no_room(settings.state):
        raise DiskFull(full, step=f"starting {group}", todo="make room, and start again")
    deadline = time.monotonic() + timeout_s
    nudged = False
    while True:
        services = status_of(group, settings)
        if services and all(service.state == "healthy" for service in services):
            return services
        if time.monotonic() > deadline:
            raise _start_timeout(group, settings, services, timeout_s)
        if current := _supervised(group, settings):
            if not nudged:
                _signal(current.supervisor, signal.SIGUSR1)
                nudged = True
            time.sleep(POLL_S)
        else:
            launch(group, command, settings, deadline)


def status(settings: Settings) -> list[ServiceStatus]:
    """Every service of every group as it is now; "stopped" when its supervisor is gone."""
    groups = {*SERVICES, *(file.stem for file in settings.run.glob("*.json"))}
    return [service for group in sorted(groups) for service in status_of(group, settings)]


def restart(name: str, settings: Settings, timeout_s: float = 30.0) -> ServiceStatus:
    """End the process of service `name` and wait until its supervisor has a new one healthy.

    Raises ServiceError when it is not running, StartTimeout after `timeout_s` seconds.
    """
    group, supervisor, old = _find(name, settings)
    begun = time.monotonic()
    _signal(old, signal.SIGTERM)
    _signal(supervisor, signal.SIGUSR1)
    while time.monotonic() < begun + timeout_s:
        if time.monotonic() > begun + min(TERM_GRACE_S, timeout_s / 2):
            _signal(old, signal.SIGKILL)
        for service in status_of(group, settings):
            if service.name == name and service.state == "healthy" and service.pid != old.pid:
                return service
        time.sleep(POLL_S)
    raise _start_timeout(group, settings, status_of(group, settings), timeout_s)


def stop(settings: Settings) -> int:
    """End every supervisor and service, and what they started; returns the number of processes ended.

    Raises ServiceError when something does not end.
    """
    return _reap(settings)


def stop_group(group: str, settings: Settings) -> int:
    """The same for the supervisor and the services of one group."""
    return _reap(settings, group)


def _reap(settings: Settings, group: str = "") -> int:
    ended = reaper.reap(settings.state, group)
    if left := reaper.find(settings.state, group):
        raise ServiceError(
            f"these processes do not end: {', '.join(str(process.pid) for process in left)}",
            step="stopping the workshop",
            todo="end them as the user who started them",
        )
    return len(ended)


def _supervised(group: str, settings: Settings) -> GroupState | None:
    """What the group's supervisor wrote; None when it is gone."""
    current = state.read(settings.run / f"{group}.json")
    return current if current and alive(current.supervisor) else None


def status_of(group: str, settings: Settings) -> list[ServiceStatus]:
    """The services of one group: what their supervisor says, corrected by what their addresses answer now."""
    if current := _supervised(group, settings):
        full = no_room(settings.state)
        with ThreadPoolExecutor() as pool:
            answers = list(pool.map(_ask, current.services))
        return [_seen(*each, full) for each in zip(current.services, answers, strict=True)]
    last = state.read(settings.run / f"{group}.json")
    known = last.services if last else [ServiceStatus(name, "stopped") for name in SERVICES.get(group, ())]
    behind = {process.pid for process in reaper.find(settings.state)} if last else set()
    return [_stopped(service, service.pid in behind) for service in known]


def _ask(service: ServiceStatus) -> str:
    return trouble(service.health_url) if service.pid else ""


def _seen(service: ServiceStatus, trouble: str, full: str) -> ServiceStatus:
    if service.pid is None:
        return service
    if not trouble:
        return replace(service, state="unhealthy" if full else "healthy", detail=full)
    return replace(service, state="unhealthy", detail=trouble) if service.state == "healthy" else service


def _stopped(service: ServiceStatus, left_behind: bool) -> ServiceStatus:
    detail = f"process {service.pid} was left behind; ./stop.sh ends it" if left_behind else service.detail
    return replace(service, state="stopped", url="", pid=None, detail=detail)


def _find(name: str, settings: Settings) -> tuple[str, Process, Process]:
    """The group of the running service `name`, its supervisor and its process."""
    for file in settings.run.glob("*.json"):
        current = _supervised(file.stem, settings)
        for service in current.services if current else ():
            if current and service.name == name and service.pid is not None:
                return file.stem, current.supervisor, Process(service.pid, born(service.pid) or 0)
    raise ServiceError(
        f"{name} is not running", step=f"restarting {name}", todo="start the workshop: ./run.sh"
    )


def _start_timeout(
    group: str, settings: Settings, services: Sequence[ServiceStatus], timeout_s: float
) -> StartTimeout:
    log = settings.logs / f"{group}-supervisor.log"
    seen = [f"the supervisor of {group} lists no services. {quoted(log, last_lines(log))}"]
    late = [service for service in services if service.state != "healthy"]
    for service in late:
        log = settings.logs / f"{service.name}.log"
        about = f" ({service.detail})" if service.detail else ""
        seen.append(f"{service.name} is {service.state}{about}. {quoted(log, last_lines(log))}")
    return StartTimeout(
        f"not healthy within {timeout_s:g} s: " + "\n".join(seen[1:] if late else seen),
        step=f"starting {group}",
        todo="look at ./status.sh: it may be healthy by now; else ./stop.sh and start again",
    )


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        if alive(process):
            os.kill(process.pid, number)
