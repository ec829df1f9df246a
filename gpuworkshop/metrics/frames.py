"""The one shape in which metrics come: a wide DataFrame, the same from every source.

The index is a tz-aware DatetimeIndex in UTC named `time`; the columns are float64 under a MultiIndex whose
first levels are LEVELS, with "" where a series has no such label. A value that is missing is NaN, never 0.
No two series are ever merged: where LEVELS cannot tell them apart, the labels that can are appended.
`attrs` keeps metric, unit, source, query and simulated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

LEVELS = ("namespace", "pod", "container", "node", "gpu")
WORKLOAD = ("namespace", "pod", "container")

Labels = Mapping[str, str]


def wide(
    times: np.ndarray, values: np.ndarray, series: Sequence[Labels], labels: Sequence[str] = ()
) -> pd.DataFrame:
    """A frame of `values`, shape (series, times), which it takes over without a copy.

    `times` are epoch seconds, float64; `series` the labels of each row of `values`; `labels` are further
    labels wanted as levels.
    """
    return pd.DataFrame(values.T, index=time_index(times), columns=columns(series, labels), copy=False)


def time_index(times: np.ndarray) -> pd.DatetimeIndex:
    """Epoch seconds as the index of a frame; they are kept to the millisecond, as Prometheus does."""
    milliseconds = np.rint(np.asarray(times, dtype=np.float64) * 1000).astype("datetime64[ms]")
    return pd.DatetimeIndex(milliseconds.astype("datetime64[ns]"), tz="UTC", name="time")


def columns(series: Sequence[Labels], labels: Sequence[str] = ()) -> pd.MultiIndex:
    """The columns of these series: LEVELS, the labels asked for, and those that keep series apart."""
    places = _places(series)
    names = [*LEVELS, *dict.fromkeys(name for name in labels if name not in LEVELS)]
    rows = [
        (*place, *(each.get(name, "") for name in names[len(LEVELS) :]))
        for place, each in zip(places, series, strict=True)
    ]
    for name in _telling_apart(rows, series, names):
        rows = [(*row, each.get(name, "")) for row, each in zip(rows, series, strict=True)]
        names.append(f"target_{name}" if name in LEVELS else name)
    return pd.MultiIndex.from_tuples(rows, names=names) if rows else _no_columns(names)


def _places(series: Sequence[Labels]) -> list[tuple[str, ...]]:
    """The LEVELS of each series.

    Prometheus moves a scraped label that clashes with the target's to `exported_…`. Where it did so within
    a job, `pod` is the exporter's own, also on the series of a GPU that no pod uses.
    """
    clashing = {
        (each.get("job", ""), level) for each in series for level in WORKLOAD if f"exported_{level}" in each
    }
    return [
        (
            *(
                each.get(f"exported_{level}" if (each.get("job", ""), level) in clashing else level, "")
                for level in WORKLOAD
            ),
            each.get("node") or each.get("Hostname") or each.get("hostname", ""),
            each.get("gpu", ""),
        )
        for each in series
    ]


def _telling_apart(
    rows: Sequence[tuple[str, ...]], series: Sequence[Labels], have: Iterable[str]
) -> list[str]:
    """The fewest further labels, found greedily, that make each row unlike the others."""
    found: list[str] = []
    keys: list[tuple[str, ...]] = list(rows)
    spare = dict.fromkeys(["__name__", "GPU_I_ID", *sorted({name for each in series for name in each})])
    candidates = [name for name in spare if name in LEVELS or name not in have]
    while candidates and (distinct := len(set(keys))) < len(keys):
        gains = {
            name: len({(key, each.get(name, "")) for key, each in zip(keys, series, strict=True)})
            for name in candidates
        }
        best = max(candidates, key=gains.__getitem__)
        if gains[best] == distinct:
            break
        keys = [(*key, each.get(best, "")) for key, each in zip(keys, series, strict=True)]
        candidates.remove(best)
        found.append(best)
    return found


def _no_columns(names: list[str]) -> pd.MultiIndex:
    return pd.MultiIndex.from_arrays([[] for _ in names], names=names)
