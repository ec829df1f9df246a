"""Counters become what was added since the scrape before, as CloudWatch adds up.

The first scrape gives nothing; after a reset the value itself is what was added. What was not seen for five
minutes is forgotten, and an invalid value takes the baseline away.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

KEPT_MS = 300_000
Key = tuple[str, frozenset[tuple[str, str]]]
Baseline = Mapping[Key, tuple[float, int]]
"""The last value of each counter and when it was, in milliseconds."""


class Deltas:
    """One scrape at `time_ms` against the baseline of the scrapes before; `after` is the next baseline."""

    def __init__(self, before: Baseline, time_ms: int) -> None:
        self._time_ms = time_ms
        self.after: dict[Key, tuple[float, int]] = {
            key: point for key, point in before.items() if time_ms - point[1] <= KEPT_MS
        }

    def added(self, name: str, labels: Mapping[str, str], value: float) -> float | None:
        """What the counter gained; None on its first scrape and for a value that is no number."""
        key = name, frozenset(labels.items())
        before = self.after.pop(key, None)
        if not math.isfinite(value):
            return None
        self.after[key] = value, self._time_ms
        if before is None:
            return None
        return value - before[0] if value >= before[0] else value
