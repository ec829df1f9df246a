"""The last minutes of some series, on a grid of ticks.

Tick k stands for the time k * every_s, so samples of different polls, panels and kernels line up. A row
that nobody has filled is NaN: where nothing came there is a gap, never an old value. The memory is one
array, used round and round; a poll writes a row or two and moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpuworkshop.live.series import Key

Floats = NDArray[np.float64]
Ticks = NDArray[np.int64]


class Ring:
    """`capacity` ticks of any number of series; `newest` is the last tick, `keys` the columns."""

    def __init__(self, capacity: int) -> None:
        self.newest = 0
        self.keys: list[Key] = []
        self._values: Floats = np.full((capacity, 0), np.nan)

    @property
    def capacity(self) -> int:
        """How many ticks are kept."""
        return len(self._values)

    @property
    def oldest(self) -> int:
        """The first tick that is kept."""
        return self.newest - self.capacity + 1

    def advance(self, tick: int) -> None:
        """Make `tick` the newest; the rows on the way are empty until they are put."""
        passed = min(tick - self.newest, self.capacity)
        if passed > 0:
            self._values[np.arange(tick - passed + 1, tick + 1) % self.capacity] = np.nan
            self.newest = tick

    def put(self, ticks: Ticks, keys: Sequence[Key], values: Floats) -> None:
        """Write rows, values[i, j] being series keys[j] at ticks[i]; what is outside is left out."""
        columns = self._columns(keys)
        inside = (ticks >= self.oldest) & (ticks <= self.newest)
        self._values[(ticks[inside] % self.capacity)[:, None], columns] = values[inside]

    def rows(self) -> tuple[Ticks, Floats]:
        """A copy, oldest first: ticks of shape (capacity,), values of shape (capacity, series)."""
        ticks = np.arange(self.oldest, self.newest + 1)
        return ticks, self._values[ticks % self.capacity]

    def drop_empty(self) -> None:
        """Forget series that have no value left."""
        alive = np.asarray(np.isfinite(self._values).any(axis=0))
        if not alive.all():
            self.keys = [key for key, kept in zip(self.keys, alive, strict=True) if kept]
            self._values = self._values[:, alive]

    def resized(self, capacity: int) -> Ring:
        """A ring of another capacity with the same newest tick, and as many rows as fit."""
        ring = Ring(capacity)
        ring.advance(self.newest)
        ticks, values = self.rows()
        ring.put(ticks, self.keys, values)
        return ring

    def _columns(self, keys: Sequence[Key]) -> list[int]:
        known = {key: column for column, key in enumerate(self.keys)}
        new = [key for key in keys if key not in known]
        if new:
            known.update((key, len(self.keys) + column) for column, key in enumerate(new))
            self.keys = [*self.keys, *new]
            self._values = np.hstack([self._values, np.full((self.capacity, len(new)), np.nan)])
        return [known[key] for key in keys]
