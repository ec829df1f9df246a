"""Keeps one group of services running: the whole of `gpuworkshop supervise GROUP`.

There is one supervisor a group, held by a lock file. It is a single asyncio loop with a `Keeper` for each
service: start it, ask after its health, start it anew when it dies or hangs, with a back-off. Each change is
written to the group's state file. Whoever started the supervisor hears once, through a pipe, that all is
healthy or why it will not be. SIGTERM ends the services in reverse order; SIGUSR1 forgets the back-off.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

from gpuworkshop.errors import WorkshopError
from gpuworkshop.processes import reaper, state
from gpuworkshop.processes.children import Service
from gpuworkshop.processes.failures import to_wire
from gpuworkshop.processes.handshake import Announcer
from gpuworkshop.processes.keeper import PACE, Keeper, Pace
from gpuworkshop.processes.reaper import Process
from gpuworkshop.settings import Settings

__all__ = ["Service", "supervise"]

GUARD_S = 1.0


def supervise(
    group: str, build: Callable[[], Sequence[Service]], settings: Settings, pace: Pace = PACE
) -> None:
    """Run the services that `build` lists, in the foreground, until SIGTERM or SIGINT.

    Returns at once when the group has a supervisor already. Raises what `build` raises, and ServiceDied (or
    PortInUse, DiskFull) when a service dies again and again without ever having been healthy; whoever
    started this process by `groups.ensure` gets the same error.
    """
    announcer = Announcer()
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # it may come before there is anything to nudge
    settings.run.mkdir(parents=True, exist_ok=True)
    settings.logs.mkdir(parents=True, exist_ok=True)
    lock = settings.run / f"{group}.lock"
    if (held := _only_one(lock)) is None:
        announcer.tell({"taken": True})
        return
    reaper.reap(settings.state, group)  # what a supervisor that was killed has left behind
    record = settings.run / f"{group}.json"
    write = _writer(record)
    write([])
    try:
        keepers: list[Keeper] = []
        keepers += [Keeper(group, one, settings, pace, lambda: write(keepers)) for one in build()]
        write(keepers)
        asyncio.run(_run(keepers, announcer, lambda: _guard(lock, held, record, lambda: write(keepers))))
    except WorkshopError as error:
        announcer.tell({"error": to_wire(error)})
        raise


async def _run(
    keepers: Sequence[Keeper], announcer: Announcer, guard: Callable[[], Coroutine[None, None, None]]
) -> None:
    stop = _signals(keepers)
    stopping = asyncio.create_task(stop.wait())
    announcing = asyncio.create_task(_announce(keepers, announcer))
    guarding = asyncio.create_task(guard())
    keeping = [asyncio.create_task(keeper.run()) for keeper in keepers]
    try:
        done, _ = await asyncio.wait({stopping, guarding, *keeping}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (stopping, guarding, announcing, *reversed(keeping)):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _signals(keepers: Sequence[Keeper]) -> asyncio.Event:
    """Nudge the keepers at SIGUSR1; the event is set at SIGTERM and SIGINT."""
    stop = asyncio.Event()

    def nudge() -> None:
        for keeper in keepers:
            keeper.nudge()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_signal_handler(signal.SIGINT, stop.set)
    loop.add_signal_handler(signal.SIGUSR1, nudge)
    return stop


async def _announce(keepers: Sequence[Keeper], announcer: Announcer) -> None:
    for keeper in keepers:
        await keeper.was_healthy.wait()
    announcer.tell({"healthy": True})


def _writer(path: Path) -> Callable[[Sequence[Keeper]], None]:
    me = Process(os.getpid(), reaper.born(os.getpid()) or 0)

    def write(keepers: Sequence[Keeper]) -> None:
        try:
            state.write(path, me, [keeper.status for keeper in keepers])
        except OSError as error:  # a full disk is no reason to let the services go
            print(f"cannot write {path}: {error.strerror}", file=sys.stderr)

    return write


async def _guard(lock: Path, held: int, record: Path, write: Callable[[], None]) -> None:
    """Mend the state file when somebody damaged it; return when the lock is gone, and with it the claim."""
    me = os.getpid()
    while True:
        await asyncio.sleep(GUARD_S)
        try:
            if os.fstat(held).st_ino != lock.stat().st_ino:
                return
        except FileNotFoundError:
            return
        current = state.read(record)
        if current is None or current.supervisor.pid != me:
            write()


def _only_one(lock: Path) -> int | None:
    """Take the group's lock, for the life of this process, by the returned handle; None if another has it."""
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
