"""What a finding is: a stable code, how bad it is, what was seen, and what mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

ERROR, WARNING = "error", "warning"
MOST_NAMES = 5


@dataclass(frozen=True)
class Finding:
    """One fault. An ERROR loses data or makes it wrong; a WARNING costs money, or misleads."""

    code: str
    severity: str
    message: str
    fix: str


def listed(names: Iterable[str]) -> str:
    """The first few names, and how many more there are."""
    every = list(dict.fromkeys(names))
    more = len(every) - MOST_NAMES
    return ", ".join(every[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")
