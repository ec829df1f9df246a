"""The picture: one axes a panel, one above the other, sharing the time; drawn again and again.

A matplotlib Figure on Agg, without pyplot, which would keep every figure alive. The artists are made
once and get new data, since making them costs more than drawing them. The layout is counted in pixels:
a layout engine would measure every text in every frame.

Lines of equal value lie side by side, a line's width apart, instead of one on top of the other: three
pods at 100 % are three lines to see.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from threading import Lock
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle
from matplotlib.path import Path
from matplotlib.ticker import EngFormatter, FixedFormatter, FixedLocator, MaxNLocator
from matplotlib.transforms import IdentityTransform, blended_transform_factory

from gpuworkshop.live.charts import Chart
from gpuworkshop.live.legend import DPI, FAINT, INK, LEFT, RIGHT, WIDTH, Legend
from gpuworkshop.live.png import draw, to_png
from gpuworkshop.live.ring import Floats
from gpuworkshop.live.series import Styles, style

HEAD, FOOT = 44, 56
ALONE, STACKED = 320, 132
GRID = "#E4E4E4"

_FULL = {"%": 100.0, "ratio 0-1": 1.0}
_drawing = Lock()  # matplotlib's caches are not made for several threads


class LiveFigure:
    """Draws charts as PNG. Series keep their style from one picture to the next."""

    def __init__(self) -> None:
        self._styles = Styles()
        self._figure = Figure(dpi=DPI, facecolor="white")
        self._canvas = FigureCanvasAgg(self._figure)
        self._strips: list[_Strip] = []
        self._strips_for: list[tuple[str, str]] = []
        self._legend = Legend()

    def draw(self, charts: Sequence[Chart], start: float, end: float) -> bytes:
        """The picture of these charts from `start` to `end` (epoch seconds), as PNG."""
        keys = list(dict.fromkeys(key for chart in charts for key in sorted(chart.keys)))
        self._styles.keep(keys)
        with _drawing:
            self._build([(chart.title, chart.unit) for chart in charts])
            for strip, chart in zip(self._strips, charts, strict=True):
                strip.update(chart, self._styles, start, end)
            self._provenance.set_text(", ".join([*_back_filled(charts, start, end), *simulated(charts)]))
            return to_png(np.vstack([draw(self._canvas), self._legend.draw(keys, self._styles)]))

    def _build(self, strips: list[tuple[str, str]]) -> None:
        if strips == self._strips_for:
            return
        strip = max(ALONE // len(strips), STACKED)
        height = len(strips) * (HEAD + strip) + FOOT
        self._figure.clear()
        self._figure.set_size_inches(WIDTH / DPI, height / DPI)
        self._strips = []
        for i, (title, unit) in enumerate(strips, start=1):
            bottom = height - i * (HEAD + strip)
            box = LEFT / WIDTH, bottom / height, (WIDTH - LEFT - RIGHT) / WIDTH, strip / height
            self._strips.append(_Strip(self._figure.add_axes(box), title, unit, strip, i == len(strips)))
        x, y = 1 - RIGHT / WIDTH, 1 - 14 / height
        self._provenance = self._figure.text(
            x, y, "", color=FAINT, size=10, style="italic", ha="right", va="top"
        )
        self._strips_for = strips


class _Strip:
    """One axes and its artists."""

    def __init__(self, axes: Axes, title: str, unit: str, height: int, last: bool) -> None:
        self._axes, self._height, self._last = axes, height, last
        axes.set_title(_capital(title), loc="left", size=14, weight="bold", color=INK, pad=9)
        axes.set_ylabel(unit, size=12, color=INK)
        place = blended_transform_factory(axes.figure.transFigure, axes.transAxes)
        axes.yaxis.set_label_coords(28 / WIDTH, 0.5, transform=place)
        axes.grid(visible=True, color=GRID, linewidth=1)
        axes.set_axisbelow(True)
        axes.tick_params(length=0, pad=6, labelsize=11, labelcolor=INK, labelbottom=last)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set(color=FAINT)
        self._lines = LineCollection([])
        self._dots = PathCollection([_dot()], sizes=[30], edgecolors="white", linewidths=0.8, zorder=3)
        self._dots.set(transform=IdentityTransform(), offset_transform=axes.transData, clip_on=False)
        axes.add_collection(self._lines, autolim=False)
        axes.add_collection(self._dots, autolim=False)
        self._shade = axes.axvspan(0, 0, color="#F2F2F2", linewidth=0, zorder=0)
        text: dict[str, Any] = {"color": FAINT, "size": 11, "transform": axes.transAxes, "va": "top"}
        self._empty = axes.text(0.5, 0.55, "", ha="center", **text)

    def update(self, chart: Chart, styles: Styles, start: float, end: float) -> None:
        low, high = self._set_scales(chart, start, end)
        order = sorted(range(len(chart.keys)), key=lambda i: styles.slot(chart.keys[i]))
        slots = [styles.slot(chart.keys[i]) for i in order]
        looks = [style(slot) for slot in slots]
        width = _width(len(order))
        points = np.empty((len(order), len(chart.times), 2))
        points[:, :, 0] = chart.times
        points[:, :, 1] = np.where(np.isfinite(chart.values), chart.values, np.nan)[:, order].T
        points[:, :, 1] += _side_by_side(slots, width, (high - low) / self._height)[:, None]
        self._lines.set(
            segments=list(points),
            color=[look.colour for look in looks],
            linestyle=[(0, look.dashes or None) for look in looks],
            linewidth=width,
            joinstyle="round" if width > 1 else "bevel",  # a quarter of the time, and nothing to see
        )
        self._mark(points, low, high, [look.colour for look in looks])
        self._say(chart, start, end)

    def _mark(self, points: Floats, low: float, high: float, colours: Sequence[str]) -> None:
        """A dot on each line's newest value, and on values without neighbours, which make no line."""
        values = points[:, :, 1]
        shown = np.isfinite(values)
        padded = np.pad(shown, ((0, 0), (1, 1)))
        marked = shown & ~padded[:, :-2] & ~padded[:, 2:]
        if len(points) <= 8 and shown.size:
            newest = shown.shape[1] - 1 - np.argmax(shown[:, ::-1], axis=1)
            marked[np.arange(len(points)), newest] |= shown.any(axis=1)
        marked &= (values >= low) & (values <= high)
        self._dots.set_offsets(points[marked])
        self._dots.set_facecolor([colours[i] for i in np.nonzero(marked)[0].tolist()])

    def _set_scales(self, chart: Chart, start: float, end: float) -> tuple[float, float]:
        ticks = _value_ticks(chart, 5 if self._height > 2 * STACKED else 3)
        room = 0.05 * (ticks[-1] - ticks[0])
        low, high = ticks[0] - room, ticks[-1] + room
        self._axes.set(xlim=(start, end), ylim=(low, high))
        self._axes.yaxis.set_major_locator(FixedLocator(list(ticks)))
        self._axes.yaxis.set_major_formatter(FixedFormatter(_value_labels(ticks)))
        moments = _time_ticks(start, end)
        self._axes.xaxis.set_major_locator(FixedLocator(moments))
        if self._last:
            clock = [time.strftime("%H:%M:%S", time.localtime(moment)) for moment in moments]
            self._axes.xaxis.set_major_formatter(FixedFormatter(clock))
            self._axes.set_xlabel(f"local time ({_zone(end)})", size=11, color=FAINT, labelpad=4)
        return low, high

    def _say(self, chart: Chart, start: float, end: float) -> None:
        edge = _made_up_until(chart, start, end)
        self._shade.set(x=start, width=edge - start)
        self._empty.set_text("" if chart.has_data else "no data yet")


def _capital(title: str) -> str:
    """Power for "power"; vGPU, and PromQL, which has no capitals to give, stay."""
    first, _, rest = title.partition(" ")
    plain = first.isalpha() and first.islower()
    return f"{first.capitalize()} {rest}".strip() if plain else title


def _dot() -> Path:
    marker = MarkerStyle("o")
    return marker.get_path().transformed(marker.get_transform())


def _width(series: int) -> float:
    return 2.2 if series <= 8 else 1.6 if series <= 32 else 1.0


def _side_by_side(slots: Sequence[int], width: float, unit_per_pixel: float) -> Floats:
    """How far each line is moved, in the unit of the axis; not at all where there are many."""
    if len(slots) > 8:
        return np.zeros(len(slots))
    places = np.arange(len(slots), dtype=np.float64) - (len(slots) - 1) / 2
    return places * -min(width * DPI / 108, 12 / max(len(slots), 1)) * unit_per_pixel


def _value_ticks(chart: Chart, steps: int) -> Floats:
    """Ticks from the bottom of the axis to its top: fixed for shares, else round and around the values."""
    if chart.unit in _FULL:
        return np.linspace(0, _FULL[chart.unit], steps)
    finite = chart.values[np.isfinite(chart.values)]
    low, high = float(finite.min(initial=0)), float(finite.max(initial=0))
    ticks = MaxNLocator(nbins=steps, steps=[1, 2, 2.5, 5, 10]).tick_values(
        low, high if high > low else low + 1
    )
    return np.asarray(ticks, dtype=np.float64)


def _value_labels(ticks: Floats) -> list[str]:
    if np.abs(ticks).max() >= 1e6:
        engineer = EngFormatter(sep=" ")
        return [engineer(tick) for tick in ticks]
    return [f"{tick:,.10g}".replace(",", "\u2009") for tick in ticks]


def _time_ticks(start: float, end: float) -> list[float]:
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400)
    step = next((step for step in steps if (end - start) / step <= 8), steps[-1])
    return [float(moment) for moment in np.arange(np.ceil(start / step) * step, end + step / 1000, step)]


def _zone(moment: float) -> str:
    return time.strftime("%Z", time.localtime(moment))


def simulated(charts: Sequence[Chart]) -> list[str]:
    """What has to be said where these charts are shown: "simulated: H200 trace"."""
    notes = dict.fromkeys(str(chart.attrs.get("simulated") or "") for chart in charts)
    return [f"simulated: {note}" for note in notes if note]


def _made_up_until(chart: Chart, start: float, end: float) -> float:
    """Until when, from `start` to `end`, this chart's history was made up; `start` if it was not.

    A history goes on a few seconds beyond the moment at which it is made: until scrapes take over.
    """
    until = chart.attrs.get("backfilled_before")
    return min(max(until.timestamp(), start), end) if isinstance(until, datetime) else start


def _back_filled(charts: Sequence[Chart], start: float, end: float) -> list[str]:
    edge = max((_made_up_until(chart, start, end) for chart in charts), default=start)
    clock = time.strftime("%H:%M:%S", time.localtime(edge))
    return [f"back-filled before {clock}"] if edge > start else []
