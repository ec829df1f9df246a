"""The sampler's thread: one call every so often, at multiples of the interval, until it is stopped.

A thread, since an asyncio task stands still while a cell runs. A call that takes long makes the next one
later: beats that were missed are left out, never queued, and others get as much time as the call took.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread, current_thread

LONGEST_REST_S = 2.0


class Beat:
    """Calls `tick`, which deals with its own exceptions, at once and then every `every_s` seconds.

    `ended` is set when there will be no further call.
    """

    def __init__(self, name: str, tick: Callable[[], None], every_s: float) -> None:
        self.ended = Event()
        self._tick = tick
        self._every_s = every_s
        self._wake = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Call `tick` now instead of at the next beat."""
        self._wake.set()

    def stop(self, timeout_s: float = 2.0) -> None:
        """No further call; waits for the one that runs, but not longer than `timeout_s`."""
        self.ended.set()
        self._wake.set()
        if self._thread.is_alive() and self._thread is not current_thread():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self.ended.is_set():
            began = time.monotonic()
            self._tick()
            self._wake.wait(pause_s(time.time(), time.monotonic() - began, self._every_s))
            self._wake.clear()


def pause_s(now: float, took_s: float, every_s: float) -> float:
    """How long to wait for the next beat: to the next multiple of `every_s` that leaves rest enough."""
    rest_s = min(took_s, LONGEST_REST_S)
    to_next = every_s - now % every_s
    missed = max(0, -int((to_next - rest_s) // every_s))
    return to_next + missed * every_s
