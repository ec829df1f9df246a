"""Measure a load that goes on and off: its period, its duty cycle, and how far one lags behind another.

A series is cut in two levels (Otsu's threshold, then the median of either side). A sample turns the state
only when it is beyond a third of the span on the other side, so that noise around the middle counts for
nothing; the moment of a turn is interpolated where the line crosses the middle. Only phases with both
ends seen are measured. A gap (NaN, or no row) is not "off": what it may have hidden is left out.

Sampling too slowly does not fail, it lies: a 40 s wave seen every 60 s looks like a wave of 120 s, and
no look at the samples can tell. `Wave.resolved` says whether there were enough samples a phase to trust.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from itertools import pairwise

import numpy as np
import pandas as pd

from gpuworkshop.errors import NoWave

TWO_LEVELS = 0.8
"""Share of the variance that two levels must explain; evenly spread values reach 0.75, a sine 0.81."""
MIN_SPAN = 0.1
"""Difference of the levels, as a share of the greater."""
MAX_IRREGULAR = 0.25
"""Standard deviation of the cycles' lengths over their mean; on and off at random has about 0.5."""
GAP_STEPS = 5
"""Samples further apart than so many usual distances have a gap in between."""
FLICKER = 0.1
"""A phase shorter than this share of the longest of its kind is a sample out of order, not a phase."""
RESOLVED_SAMPLES = 4
"""Samples a phase, on and off, from which a wave can be trusted."""
MIN_CYCLES = 2
MIN_UNRESOLVED_CYCLES = 4
"""With fewer samples a phase, regularity must make up for it."""


@dataclass(frozen=True)
class Wave:
    """An on-off wave. Times are in seconds; `low` and `high` in the series' own unit.

    `duty` is on_s / period_s; `cycles` counts complete ones. If `resolved` is False there were too few
    samples a phase: a faster wave can look just like this one, and the figures may be false.
    """

    period_s: float
    duty: float
    on_s: float
    off_s: float
    cycles: int
    low: float
    high: float
    sampled_every_s: float
    resolved: bool


def measure(series: pd.Series) -> Wave:
    """The on-off wave in a series, whose index is a DatetimeIndex or seconds.

    Raises NoWave if there are no two levels, they do not alternate regularly, or fewer than two complete
    cycles are seen. Beware of slow sampling: a 40 s wave sampled every 60 s is measured, without an error,
    as a wave of 120 s; `resolved` is then False.
    """
    times, values = _samples(series)
    low, high = _levels(values)
    every = float(np.median(np.diff(times)))
    on, off = _phases(times, values, low, high, GAP_STEPS * every)
    cycles = min(len(on), len(off))
    on_s, off_s = (float(np.mean(phases)) if phases else 0.0 for phases in (on, off))
    resolved = min(on_s, off_s) >= RESOLVED_SAMPLES * every
    if cycles < (MIN_CYCLES if resolved else MIN_UNRESOLVED_CYCLES):
        raise _no_wave(
            f"{cycles} complete cycles in {times[-1] - times[0]:.0f} s are too few to tell",
            "look at a longer time: at least three periods of the wave",
        )
    lengths = np.array(on[:cycles]) + np.array(off[:cycles])
    if lengths.std() > MAX_IRREGULAR * lengths.mean():
        raise _no_wave(
            f"it goes up and down, but not regularly: cycles of {lengths.min():.1f} to {lengths.max():.1f} s",
            "plot it; is the load the one that you expect?",
        )
    period = on_s + off_s
    return Wave(period, on_s / period, on_s, off_s, cycles, low, high, every, resolved)


def table(frame: pd.DataFrame) -> pd.DataFrame:
    """Each column's wave as a row: the fields of Wave, and `note`, which says why a column has none."""
    rows = [_row(frame.iloc[:, place]) for place in range(frame.shape[1])]
    names = [*(field.name for field in fields(Wave)), "note"]
    return pd.DataFrame(rows, index=frame.columns, columns=names)


def lag(a: pd.Series, b: pd.Series) -> float:
    """Seconds by which `b` comes after `a` (negative: before), where their cross-correlation is highest.

    Both are laid on one grid, as fine as the finer of them, over the time that they share; gaps count as
    average. A wave that repeats has a lag only up to its period: the smaller one is returned.
    Raises NoWave if they share too little time, or one does not change in it.
    """
    (times_a, values_a), (times_b, values_b) = _samples(a), _samples(b)
    start, end = max(times_a[0], times_b[0]), min(times_a[-1], times_b[-1])
    every = float(min(np.median(np.diff(times_a)), np.median(np.diff(times_b))))
    grid = np.arange(start, end, every)
    if len(grid) < 2 * RESOLVED_SAMPLES:
        raise _no_wave(f"the two share only {max(0.0, end - start):.0f} s", "compare series of the same time")
    left, right = _on_grid(times_a, values_a, grid), _on_grid(times_b, values_b, grid)
    size = 2 * len(grid)
    spectrum = np.conj(np.fft.rfft(left, size)) * np.fft.rfft(right, size)
    correlation = np.roll(np.fft.irfft(spectrum, size), len(grid))
    return float((_peak(correlation) - len(grid)) * every)


def _samples(series: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Seconds and values of the samples that are there, in order."""
    ordered = series[np.isfinite(series.to_numpy(dtype=np.float64))].sort_index()
    ordered = ordered[~ordered.index.duplicated()]
    if len(ordered) < 2 * MIN_CYCLES:
        raise _no_wave(f"only {len(ordered)} samples", "wait until there are more")
    index = ordered.index
    if isinstance(index, pd.DatetimeIndex):
        times = (index - index[0]).total_seconds().to_numpy() + index[0].timestamp()
    else:
        times = index.to_numpy(dtype=np.float64)
    return times, ordered.to_numpy(dtype=np.float64)


def _levels(values: np.ndarray) -> tuple[float, float]:
    """The two levels around which the values lie."""
    ordered = np.sort(values)
    count = np.arange(1, len(ordered))
    below = np.cumsum(ordered)[:-1] / count
    above = (ordered.sum() - np.cumsum(ordered)[:-1]) / (len(ordered) - count)
    between = count * (len(ordered) - count) * (above - below) ** 2 / len(ordered) ** 2
    cut = int(np.argmax(between)) + 1
    low, high = float(np.median(ordered[:cut])), float(np.median(ordered[cut:]))
    span = high - low
    if span <= MIN_SPAN * max(abs(low), abs(high)):
        raise _no_wave(f"it stays about {np.median(values):.3g}", "is the load running, and does it pause?")
    if between[cut - 1] < TWO_LEVELS * np.var(values):
        raise _no_wave(
            f"its values from {ordered[0]:.3g} to {ordered[-1]:.3g} do not lie on two levels",
            "plot it; is the load the one that you expect?",
        )
    return low, high


def _phases(
    times: np.ndarray, values: np.ndarray, low: float, high: float, gap_s: float
) -> tuple[list[float], list[float]]:
    """Lengths of the phases, on and off, of which both ends were seen and no gap came in between."""
    on: list[float] = []
    off: list[float] = []
    breaks = np.flatnonzero(np.diff(times) > gap_s) + 1
    for part in np.split(np.arange(len(times)), breaks):
        turns = _steady(list(_turns(times[part], values[part], low, high)))
        for (began, rising), (ended, _) in pairwise(turns):
            (on if rising else off).append(ended - began)
    return on, off


def _turns(times: np.ndarray, values: np.ndarray, low: float, high: float) -> Iterator[tuple[float, bool]]:
    """When the state turned, and whether to on."""
    middle, third = (low + high) / 2, (high - low) / 3
    sure = np.flatnonzero((values >= high - third) | (values <= low + third))
    is_on = values[sure] > middle
    for turn in np.flatnonzero(is_on[1:] != is_on[:-1]):
        between = slice(sure[turn], sure[turn + 1] + 1)
        yield _crossing(times[between], values[between], middle), bool(is_on[turn + 1])


def _steady(turns: list[tuple[float, bool]]) -> list[tuple[float, bool]]:
    """The turns without those around phases too short to be one, the shortest taken out first."""
    while len(turns) > 2:
        lengths = np.diff([when for when, _ in turns])
        longest = max(lengths[0::2]), max(lengths[1::2], default=np.inf)
        shares = lengths / np.resize(longest, len(lengths))
        shortest = int(np.argmin(shares))
        if shares[shortest] >= FLICKER:
            break
        del turns[shortest : shortest + 2]
    return turns


def _crossing(times: np.ndarray, values: np.ndarray, middle: float) -> float:
    """When the line through these samples, whose ends lie on either side, last crosses the middle."""
    above = values > middle
    at = int(np.flatnonzero(above[1:] != above[:-1])[-1])
    share = (middle - values[at]) / (values[at + 1] - values[at])
    return float(times[at] + share * (times[at + 1] - times[at]))


def _on_grid(times: np.ndarray, values: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """Values on the grid, less their mean; 0 in gaps."""
    every = np.median(np.diff(times))
    after = np.clip(np.searchsorted(times, grid), 1, len(times) - 1)
    seen = times[after] - times[after - 1] <= GAP_STEPS * every
    laid = np.interp(grid, times, values)
    if not seen.any() or np.ptp(laid[seen]) == 0:
        raise _no_wave("one of the two does not change in the time they share", "look at a longer time")
    centred: np.ndarray = np.where(seen, laid - laid[seen].mean(), 0.0)
    return centred


def _peak(curve: np.ndarray) -> float:
    """Where it is highest, refined by the parabola through the three points around."""
    top = int(np.argmax(curve))
    if not 0 < top < len(curve) - 1:
        return top
    before, here, after = curve[top - 1 : top + 2]
    return float(top + (before - after) / (2 * (before - 2 * here + after)))


def _row(series: pd.Series) -> dict[str, object]:
    try:
        wave = measure(series)
        note = "" if wave.resolved else "sampled too rarely: this may not be its true period"
        return {**asdict(wave), "note": note}
    except NoWave as error:
        return {"note": error.seen}


def _no_wave(seen: str, todo: str) -> NoWave:
    return NoWave(seen, step="measuring a wave", todo=todo)
