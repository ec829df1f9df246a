"""A picture that stays: for saved notebooks, reports, and wherever no kernel runs any more.

A widget saves nothing but its name. A snapshot is a plain PNG in the notebook, a few dozen kilobytes,
with a text for those who cannot see it.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpuworkshop.live.charts import Chart, Source, chart_of, panels_of
from gpuworkshop.live.feed import Feed
from gpuworkshop.live.figure import LiveFigure, simulated
from gpuworkshop.live.ring import Floats
from gpuworkshop.live.series import names
from gpuworkshop.live.status import clock

MENTIONED = 8
"""How many series the text names."""


class Snapshot:
    """A PNG (`png`, bytes) and the text that describes it (`alt`)."""

    def __init__(self, png: bytes, alt: str) -> None:
        self.png = png
        self.alt = alt

    def __repr__(self) -> str:
        return self.alt

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        return self.png, {"alt": self.alt}

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        picture = b64encode(self.png).decode()
        return {"image/png": picture, "text/plain": self.alt}, {"image/png": {"alt": self.alt}}


def snapshot(
    what: pd.DataFrame | Sequence[pd.DataFrame] | Source,
    quantity: str = "",
    *,
    quantities: Sequence[str] = (),
    matchers: str = "",
    window_s: float = 120.0,
    every_s: float = 1.0,
) -> Snapshot:
    """A picture of wide DataFrames, over the time that they span, or of what a source has just now.

    The further arguments are those of `live.view` and count for a source. Raises what the source does.
    """
    if isinstance(what, pd.DataFrame):
        return _of_frames([what])
    if isinstance(what, Sequence):
        return _of_frames(what)
    now = time.time()
    panels = panels_of(quantity, quantities, matchers)
    feeds = [Feed(panel, what, every_s=every_s, window_s=window_s) for panel in panels]
    for feed in feeds:
        feed.poll(now)
    return _picture([feed.chart() for feed in feeds], now - window_s, now)


def _of_frames(frames: Sequence[pd.DataFrame]) -> Snapshot:
    charts = [chart_of(frame) for frame in frames]
    times = np.concatenate([chart.times for chart in charts])
    end = float(times.max()) if len(times) else time.time()
    start = float(times.min()) if len(times) else end
    return _picture(charts, min(start, end - 1), end)


def _picture(charts: Sequence[Chart], start: float, end: float) -> Snapshot:
    return Snapshot(LiveFigure().draw(charts, start, end), describe(charts, start, end))


def describe(charts: Sequence[Chart], start: float, end: float) -> str:
    """The picture in words: what, when, and the newest value of each series."""
    span = f"from {clock(start)} to {clock(end)} local time"
    parts = [_describe(chart) for chart in charts]
    return ". ".join([f"Plot {span}", *parts, *simulated(charts)]) + "."


def _describe(chart: Chart) -> str:
    unit = f" {chart.unit}" if chart.unit else ""
    called = names(chart.keys)
    values = [f"{called[key]} {_newest(chart.values[:, i])}{unit}" for i, key in enumerate(chart.keys)]
    more = f" and {len(values) - MENTIONED} more" if len(values) > MENTIONED else ""
    return f"{chart.title}: {', '.join(values[:MENTIONED]) or 'no data'}{more}"


def _newest(values: Floats) -> str:
    finite = values[np.isfinite(values)]
    return f"{finite[-1]:.4g}" if len(finite) else "nothing"
