"""Which series is which: its key, its name in the legend, and its style.

A series is known by the labels that it has (a `Key`), not by the column it came in: two answers of one
query may order their columns differently, and one may lack a pod that the other has. The style goes with
the key for as long as the series is in the window, so that a colour never changes its meaning when
another pod comes or goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from gpuworkshop.metrics.frames import LEVELS

Key = tuple[tuple[str, str], ...]
"""The labels of one series as (level, value) pairs, in the order of the levels, blanks left out."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9", "#000000", "#999999")
"""Okabe and Ito's colours, told apart by colour-blind people; grey for yellow, which fades on white."""

DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.2, 1.4), (6, 2, 1.2, 2))
"""On-off lengths in line widths, one after the other for each eight series; () is an unbroken line."""


@dataclass(frozen=True)
class Style:
    """How a line looks."""

    colour: str
    dashes: tuple[float, ...]


class Styles:
    """Gives each series a slot, the lowest that is free, and frees it when the series has left."""

    def __init__(self) -> None:
        self._slots: dict[Key, int] = {}

    def keep(self, keys: Iterable[Key]) -> None:
        """Say which series are seen now: others give up their slots, new ones get one."""
        seen = dict.fromkeys(keys)
        self._slots = {key: slot for key, slot in self._slots.items() if key in seen}
        taken = set(self._slots.values())
        free = (slot for slot in range(len(seen)) if slot not in taken)
        for key in seen:
            if key not in self._slots:
                self._slots[key] = next(free)

    def slot(self, key: Key) -> int:
        """The slot of a series that is seen, counted from 0."""
        return self._slots[key]


def style(slot: int) -> Style:
    """The style of a slot; after 32 slots they repeat."""
    return Style(COLOURS[slot % len(COLOURS)], DASHES[slot // len(COLOURS) % len(DASHES)])


def keys_of(columns: pd.Index) -> list[Key]:
    """The key of each column of a wide DataFrame."""
    names = [str(name) for name in columns.names]
    order = sorted(range(len(names)), key=lambda i: (_rank(names[i]), names[i]))
    rows = columns if isinstance(columns, pd.MultiIndex) else [(label,) for label in columns]
    return [tuple((names[i], str(row[i])) for i in order if row[i] != "") for row in rows]


def further(keys: Iterable[Key]) -> list[str]:
    """The levels behind the fixed ones that these series have."""
    return sorted({name for key in keys for name, _ in key} - set(LEVELS))


def pod_of(key: Key) -> tuple[str, str] | None:
    """Namespace and pod of a series; None for one that belongs to no pod."""
    labels = dict(key)
    return (labels.get("namespace", ""), labels["pod"]) if "pod" in labels else None


def names(keys: Sequence[Key]) -> dict[Key, str]:
    """A name for each series, `namespace/pod gpu N`; twins are told apart by what else differs."""
    plain = {key: _plain(dict(key)) for key in keys}
    count = Counter(plain.values())
    return {
        key: name if count[name] == 1 else f"{name} ({_difference(key, plain)})"
        for key, name in plain.items()
    }


def _rank(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)


def _plain(labels: dict[str, str]) -> str:
    if "pod" in labels:
        owner = "/".join(labels[level] for level in ("namespace", "pod") if level in labels)
    else:
        owner = labels.get("node", "")
    gpu = f"gpu {labels['gpu']}" if "gpu" in labels else ""
    name = " ".join(part for part in (owner, gpu) if part)
    if "pod" not in labels and gpu:
        return f"{name}, no pod"
    return name or ", ".join(f"{level} {value}" for level, value in labels.items()) or "all"


def _difference(key: Key, plain: dict[Key, str]) -> str:
    twins = [dict(twin) for twin, name in plain.items() if name == plain[key]]
    differing = (
        f"{level} {value}" for level, value in key if any(twin.get(level, "") != value for twin in twins)
    )
    return ", ".join(differing) or "no further labels"
