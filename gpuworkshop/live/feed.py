"""One panel's samples: asks the source for what is missing, and for nothing twice.

The first poll fills the window by one range query, the next ones ask for what is newer. All of them
follow from one rule, "what of the window is not known yet?", and so does the rest: after an outage the
gap is asked for in one query, so that nothing stored is lost; a longer window fetches its older part.

The last few ticks are asked for again, since a sample may be scraped a moment before it can be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuworkshop.live.charts import Chart, Panel, Source, epoch_s
from gpuworkshop.live.ring import Ring
from gpuworkshop.live.series import keys_of

SETTLING = 3
"""How many of the newest ticks are asked for again."""


class Feed:
    """The window of one panel, `every_s` seconds a tick, kept up to date by `poll`."""

    def __init__(self, panel: Panel, source: Source, *, every_s: float, window_s: float) -> None:
        self.panel = panel
        self._source = source
        self._every_s = every_s
        self._ring = Ring(self._ticks(window_s))
        self._known: tuple[int, int] | None = None
        self._attrs: dict[Any, Any] = {}

    def resize(self, window_s: float) -> None:
        """Change the window's length; what is known stays."""
        if self._known:
            self._known = max(self._known[0], self._ring.oldest), self._known[1]
        self._ring = self._ring.resized(self._ticks(window_s))

    def poll(self, now: float) -> None:
        """Bring the window up to `now` (epoch seconds). What the source raises is passed on.

        The window moves on in any case, so an outage shows as a gap that grows.
        """
        tick = self.tick(now)
        self._ring.advance(tick)
        for first, last in self._missing(tick):
            self._fetch(first, last)
        self._ring.drop_empty()

    def chart(self) -> Chart:
        """A copy of the window as it is now."""
        ticks, values = self._ring.rows()
        unit = self.panel.unit or str(self._attrs.get("unit", ""))
        times = ticks.astype(np.float64) * self._every_s
        return Chart(self.panel.title, unit, times, self._ring.keys, values, dict(self._attrs))

    def tick(self, time: float) -> int:
        """The newest tick that is not after `time`."""
        return int(np.floor(time / self._every_s + 1e-6))

    def _ticks(self, window_s: float) -> int:
        return max(2, round(window_s / self._every_s) + 1)

    def _missing(self, tick: int) -> list[tuple[int, int]]:
        first = self._ring.oldest
        if self._known is None or self._known[1] < first:
            return [(first, tick)]
        oldest, newest = self._known
        newer = max(newest + 1 - SETTLING, first), tick
        return [(first, oldest - 1), newer] if oldest > first else [newer]

    def _fetch(self, first: int, last: int) -> None:
        every = self._every_s
        frame = self._source.range(self.panel.expr, first * every, last * every, every, empty_ok=True)
        if len(frame):
            ticks = np.floor(epoch_s(frame.index) / every + 1e-3).astype(np.int64)
            self._ring.put(ticks, keys_of(frame.columns), frame.to_numpy(dtype=float))
            self._attrs.update(frame.attrs)
        oldest, newest = self._known or (first, last)
        self._known = min(oldest, first), max(newest, last)
