"""How long ago something was, in the form that kubectl prints: `45s`, `5m3s`, `3h12m`, `4d2h`, `12d`."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import seconds_of

MINUTE, HOUR, DAY = 60, 3600, 86_400
YEAR = 365 * DAY
TOLERATED_S = 2  # clocks that differ by less than this make an age of nought, not an invalid one


def age(timestamp: str | None, now: float) -> str:
    """The age of a timestamp of the API at `now`, in Unix seconds."""
    if not timestamp:
        return "<unknown>"
    try:
        return duration(now - seconds_of(timestamp))
    except ValueError:
        return "<invalid>"


def duration(seconds: float) -> str:
    """A duration, the coarser the longer it is."""
    whole = int(seconds)
    if whole <= -TOLERATED_S:
        return "<invalid>"
    if whole < 2 * MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * MINUTE:
        return _two(whole, MINUTE, "m", 1, "s")
    if whole < 3 * HOUR:
        return f"{whole // MINUTE}m"
    if whole < 8 * HOUR:
        return _two(whole, HOUR, "h", MINUTE, "m")
    if whole < 2 * DAY:
        return f"{whole // HOUR}h"
    if whole < 8 * DAY:
        return _two(whole, DAY, "d", HOUR, "h")
    if whole < 2 * YEAR:
        return f"{whole // DAY}d"
    if whole < 8 * YEAR:
        return _two(whole, YEAR, "y", DAY, "d")
    return f"{whole // YEAR}y"


def _two(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    """In two units, the smaller one left out when it is nought."""
    rest = seconds % large // small
    return f"{seconds // large}{large_unit}" + (f"{rest}{small_unit}" if rest else "")
