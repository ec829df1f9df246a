"""One thread that reads the backend at a fixed cadence and leaves a snapshot for scrapes.

A scrape never touches the backend, so a slow reading delays no scrape, and any number of scrapes costs
no more readings. The snapshot is immutable and replaced as a whole; readers need no lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gpuworkshop.exporter.devices import Backend, Family, Pod, PodMapping, Reading

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Held:
    """A device's reading and the pods that hold it."""

    reading: Reading
    pods: Sequence[Pod]


@dataclass(frozen=True)
class Snapshot:
    """Every device at Unix time `at`. `taken` is the monotonic clock's, for judging its age."""

    at: float
    taken: float
    duration_s: float
    devices: Sequence[Held]
    families: Sequence[Family]


def sample(backend: Backend, mapping: PodMapping, at: float) -> Snapshot:
    """Read everything once."""
    began = time.monotonic()
    devices = [Held(reading, mapping.pods(reading.device)) for reading in backend.read(at)]
    taken = time.monotonic()
    return Snapshot(at, taken, taken - began, devices, backend.families())


class Sampler:
    """Takes a snapshot every `interval_s` seconds until stopped; a context manager.

    The first is taken on entering, so that there is something to serve, and what it raises is raised there.
    """

    def __init__(self, backend: Backend, mapping: PodMapping, interval_s: float) -> None:
        self._backend = backend
        self._mapping = mapping
        self._interval_s = interval_s
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self.snapshot: Snapshot
        self._errors: Counter[str] = Counter()

    def __enter__(self) -> Sampler:
        self.snapshot = sample(self._backend, self._mapping, time.time())
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        # A reading that hangs must not hold up the end; the thread is a daemon.
        self._thread.join(timeout=2)

    def stale_s(self) -> float:
        """How old the snapshot is, if that is too old for its values to be shown as present; else 0."""
        age = time.monotonic() - self.snapshot.taken
        return age if age > 2 * self._interval_s + 5 else 0.0

    def families(self) -> list[Family]:
        """The readings that failed."""
        failed = [([("cause", cause)], float(count)) for cause, count in sorted(self._errors.items())]
        return [Family("gpuworkshop_sample_errors_total", "counter", "Readings that failed.", failed)]

    def _run(self) -> None:
        due = time.monotonic()
        while True:
            # Counted from the last due time, so that the cadence does not drift; missed beats are skipped.
            due = max(due + self._interval_s, time.monotonic())
            if self._stopped.wait(due - time.monotonic()):
                return
            try:
                self.snapshot = sample(self._backend, self._mapping, time.time())
            except Exception as error:
                self._errors[type(error).__name__] += 1
                # One bad reading must not end the sampling: the snapshot goes stale, and says so.
                log.exception("a reading failed")
