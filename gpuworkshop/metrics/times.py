"""Moments and steps as people write them, in the milliseconds that Prometheus counts in."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self

import numpy as np

from gpuworkshop.errors import MetricsError

Moment = datetime | float
Step = timedelta | float | str

MAX_ROWS = 1_000_000
"""Rows of one frame: eleven days of seconds. Far more would take all of the memory before it failed."""

_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|[smhdw]))")


@dataclass(frozen=True)
class Grid:
    """The moments of a range query: `start`, `start + step` …, `rows` of them; in epoch milliseconds."""

    start: int
    step: int
    rows: int

    @classmethod
    def of(cls, start: Moment, end: Moment, step: Step) -> Self:
        """The grid up to and with `end`. Raises MetricsError for a range or step that makes no sense."""
        first, length = milliseconds(start), duration_milliseconds(step)
        if (last := milliseconds(end)) < first:
            raise MetricsError(
                "the end lies before the start",
                step="reading a time range",
                todo="give start and end in that order",
            )
        if (rows := (last - first) // length + 1) > MAX_ROWS:
            raise MetricsError(
                f"a point each {length / 1000:g} s of this range makes {rows:,} rows, over {MAX_ROWS:,}",
                step="reading a time range",
                todo="ask for a shorter range, or a longer step",
            )
        return cls(first, length, rows)

    @property
    def end(self) -> int:
        """The last moment."""
        return self.start + (self.rows - 1) * self.step

    def parts(self, rows: int) -> Iterator[Self]:
        """This grid in pieces of at most so many rows."""
        for done in range(0, self.rows, rows):
            yield replace(self, start=self.start + done * self.step, rows=min(rows, self.rows - done))

    def times(self) -> np.ndarray:
        """Epoch seconds, float64, shape (rows,)."""
        moments: np.ndarray = (self.start + np.arange(self.rows) * self.step) / 1000
        return moments

    def places(self, times: np.ndarray) -> np.ndarray:
        """The row of each of these epoch seconds; one outside the grid raises IndexError."""
        rows = np.rint((times * 1000 - self.start) / self.step).astype(np.intp)
        if rows.size and (rows.min() < 0 or rows.max() >= self.rows):
            raise IndexError("a time outside of the range asked for")
        return rows


def milliseconds(moment: Moment) -> int:
    """Epoch milliseconds of a datetime (a naive one is local time, as in Python) or of epoch seconds."""
    # datetime's own timestamp(), since pandas' takes a naive Timestamp for UTC
    try:
        seconds = datetime.timestamp(moment) if isinstance(moment, datetime) else float(moment)
    except (TypeError, ValueError):
        seconds = math.nan
    if not math.isfinite(seconds):
        raise MetricsError(
            f"{moment} is no moment",
            step="reading a time range",
            todo="give a datetime or seconds since 1970",
        )
    return round(seconds * 1000)


def duration_milliseconds(step: Step) -> int:
    """Milliseconds of a timedelta, of seconds, or of text like "15s" or "1h30m". Raises MetricsError."""
    if isinstance(step, timedelta):
        length = step.total_seconds() * 1000
    elif isinstance(step, str):
        parts = _DURATION.findall(step)
        whole = "".join(number + unit for number, unit in parts) == step
        length = sum(float(number) * _UNITS[unit] for number, unit in parts) if whole else math.nan
    else:
        length = step * 1000
    if not (math.isfinite(length) and round(length) >= 1):
        raise MetricsError(
            f"{step!r} is no length of time",
            step="reading a time range",
            todo='give seconds, a timedelta, or text like "15s" or "1m"; at least one millisecond',
        )
    return round(length)
