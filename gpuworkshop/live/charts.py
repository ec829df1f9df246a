"""What is asked for (`Panel`) and what is shown (`Chart`): one of each an axes of the picture.

A panel's text is a quantity of the catalogue, which knows its title and unit and finds the metric's name
in whatever exporter is there, or else PromQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd

from gpuworkshop.errors import UnknownQuantity
from gpuworkshop.live.ring import Floats
from gpuworkshop.live.series import Key, further, keys_of
from gpuworkshop.metrics import catalog
from gpuworkshop.metrics.frames import wide


class Source(Protocol):
    """Where the samples come from: a `PrometheusReader`, or whatever answers as one does."""

    def range(
        self,
        expr: str,
        start: Any,
        end: Any,
        step: Any,
        *,
        labels: Sequence[str] = (),
        empty_ok: bool = False,
    ) -> pd.DataFrame:
        """The wide DataFrame of `expr` from `start` to `end` (epoch seconds), both included."""
        ...


OFFERED = (
    "GPU utilisation",
    "power",
    "SM activity",
    "SM occupancy",
    "tensor activity",
    "FP32 activity",
    "DRAM activity",
    "memory utilisation",
    "used memory",
    "PCIe sent",
    "PCIe received",
    "NVLink throughput",
    "SM clock",
    "memory clock",
    "GPU temperature",
    "memory temperature",
)
"""Quantities to choose from: those that say something as a line over time."""


@dataclass(frozen=True)
class Panel:
    """What one axes shows: its title, the unit of its values, and the PromQL that gives them."""

    title: str
    unit: str
    expr: str


@dataclass(frozen=True)
class Chart:
    """Some series of one panel over a stretch of time.

    `times` are epoch seconds, shape (n,); `values` has shape (n, series), NaN where nothing is known;
    `attrs` is what the source says about them (see the wide DataFrame).
    """

    title: str
    unit: str
    times: Floats
    keys: Sequence[Key]
    values: Floats
    attrs: Mapping[Any, Any] = field(default_factory=dict)

    @property
    def has_data(self) -> bool:
        """Whether there is any value at all."""
        return bool(np.isfinite(self.values).any())

    def frame(self) -> pd.DataFrame:
        """The wide DataFrame of what is shown, rows without any value left out."""
        series = [dict(key) for key in self.keys]
        frame = wide(self.times, self.values.T, series, further(self.keys)).dropna(how="all")
        frame.attrs = {**self.attrs, "metric": self.title, "unit": self.unit}
        return frame


def panel(text: str, matchers: str = "") -> Panel:
    """The panel that shows `text`, a quantity of the catalogue or PromQL.

    `matchers` (`namespace="default"`) narrow a quantity down. Raises UnknownQuantity, with near names,
    for plain words that are no quantity.
    """
    try:
        quantity = catalog.find(text)
    except UnknownQuantity:
        if re.fullmatch(r"[A-Za-z]+( [A-Za-z]+)*", text.strip()):
            raise
        return Panel(text, "", text)
    return Panel(quantity.title, quantity.unit, quantity.promql(matchers))


def panels_of(quantity: str, quantities: Sequence[str], matchers: str) -> list[Panel]:
    """The panels asked for, at least one. Raises UnknownQuantity."""
    asked = [text for text in (quantity, *quantities) if text]
    return [panel(text, matchers) for text in asked or OFFERED[:1]]


def chart_of(frame: pd.DataFrame) -> Chart:
    """The chart of a wide DataFrame, its rows in time order; where rows are missing there is a gap."""
    frame = frame.sort_index()
    times, values = _with_gaps(epoch_s(frame.index), frame.to_numpy(dtype=float))
    attrs = dict(frame.attrs)
    title = str(attrs.get("metric") or attrs.get("query") or "")
    return Chart(title, str(attrs.get("unit", "")), times, keys_of(frame.columns), values, attrs)


def epoch_s(index: pd.Index) -> Floats:
    """The times of a tz-aware DatetimeIndex as epoch seconds."""
    nanoseconds = pd.DatetimeIndex(index).as_unit("ns").asi8
    return np.asarray(nanoseconds / 1e9, dtype=np.float64)


def _with_gaps(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    steps = np.diff(times)
    if not len(steps):
        return times, values
    after = np.flatnonzero(steps > 1.5 * np.median(steps)) + 1
    middle = (times[after - 1] + times[after]) / 2
    return np.insert(times, after, middle), np.insert(values, after, np.nan, axis=0)
