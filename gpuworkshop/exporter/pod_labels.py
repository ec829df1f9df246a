"""Labels of pods as labels of series: which ones, by names that Prometheus takes and that are still free."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

_INVALID = re.compile(r"[^a-zA-Z0-9_]")
# Prometheus's own of a target. With honor_labels a series' label of that name would take their place.
_TARGETS = frozenset({"job", "instance"})

Labels = Sequence[tuple[str, str]]


def valid_name(name: str) -> str:
    """The name as dcgm-exporter writes it: `app_kubernetes_io_name` for `app.kubernetes.io/name`."""
    written = _INVALID.sub("_", name)
    return f"_{written}" if written[:1].isdecimal() else written


def chosen(labels: Mapping[str, str], allowed: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The labels whose names match a pattern (`*` is any text), by their names as of series.

    Of two that become the same name, the one that needed no change is taken, else the first by its name.
    """
    found: dict[str, str] = {}
    for name in sorted(labels, key=lambda name: (valid_name(name) != name, name)):
        written = valid_name(name)
        if written not in _TARGETS and any(fnmatchcase(name, pattern) for pattern in allowed):
            found.setdefault(written, labels[name])
    return tuple(sorted(found.items()))


def free(labels: Labels, taken: Iterable[str]) -> list[tuple[str, str]]:
    """Those labels whose names the series does not have already: an own one is never written twice."""
    names = set(taken)
    return [(name, value) for name, value in labels if name not in names]
