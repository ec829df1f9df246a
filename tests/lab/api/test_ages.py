"""How ages are told, by the rules of the real human-readable durations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuworkshop.lab.api.ages import age, duration
from gpuworkshop.lab.api.objects import timestamp

NOW = 1_900_000_000.0
MINUTE, HOUR, DAY = 60, 3600, 86_400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0s"),
        (0.9, "0s"),
        (-1, "0s"),
        (-2, "<invalid>"),
        (45, "45s"),
        (119, "119s"),
        (120, "2m"),
        (303, "5m3s"),
        (599, "9m59s"),
        (600, "10m"),
        (179 * MINUTE + 59, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 12 * MINUTE + 5, "3h12m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR, "8h"),
        (47 * HOUR + 59 * MINUTE, "47h"),
        (2 * DAY, "2d"),
        (4 * DAY + 2 * HOUR, "4d2h"),
        (8 * DAY, "8d"),
        (12 * DAY + 20 * HOUR, "12d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 5 * DAY, "2y5d"),
        (8 * YEAR + 5 * DAY, "8y"),
    ],
)
def test_durations(seconds: float, told: str) -> None:
    assert duration(seconds) == told
    if seconds >= 0:
        assert age(timestamp(NOW - seconds), NOW) == duration(NOW - int(NOW - seconds))


@pytest.mark.parametrize(("stamp", "told"), [(None, "<unknown>"), ("", "<unknown>"), ("soon", "<invalid>")])
def test_no_timestamp(stamp: str | None, told: str) -> None:
    assert age(stamp, NOW) == told


def test_a_timestamp_with_microseconds() -> None:
    assert age("2030-03-17T17:46:35.500000Z", NOW) == "4s"


@given(st.integers(0, 20 * YEAR))
def test_a_told_age_is_never_too_long(seconds: int) -> None:
    units = {"s": 1, "m": MINUTE, "h": HOUR, "d": DAY, "y": YEAR}
    total, number = 0, ""
    for char in duration(seconds):
        if char.isdigit():
            number += char
        else:
            total, number = total + int(number) * units[char], ""
    assert total <= seconds
    assert seconds - total < max(seconds * 0.34, 1)
