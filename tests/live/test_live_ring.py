"""The ring keeps the newest ticks, and nothing where nothing came."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuworkshop.live.ring import Ring

A, B = (("pod", "a"),), (("pod", "b"),)


def ticks(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)[:, None]


def filled() -> Ring:
    ring = Ring(5)
    ring.advance(104)
    ring.put(ticks(100, 101, 102, 103, 104), [A], column(0, 1, 2, 3, 4))
    return ring


def test_rows_come_oldest_first() -> None:
    at, values = filled().rows()
    assert at.tolist() == [100, 101, 102, 103, 104]
    assert values[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_ticks_that_were_passed_over_are_missing() -> None:
    ring = filled()
    ring.advance(106)
    ring.put(ticks(106), [A], column(6))
    at, values = ring.rows()
    assert at.tolist() == [102, 103, 104, 105, 106]
    np.testing.assert_array_equal(values[:, 0], [2, 3, 4, np.nan, 6])


def test_a_long_leap_leaves_nothing() -> None:
    ring = filled()
    ring.advance(10_000)
    assert np.isnan(ring.rows()[1]).all()


def test_the_clock_going_back_changes_nothing() -> None:
    ring = filled()
    ring.advance(90)
    assert ring.newest == 104
    assert ring.rows()[1][:, 0].tolist() == [0, 1, 2, 3, 4]


def test_what_lies_outside_is_left_out() -> None:
    ring = filled()
    ring.put(ticks(99, 105), [A], column(-1, -1))
    assert ring.rows()[1][:, 0].tolist() == [0, 1, 2, 3, 4]


def test_a_new_series_has_no_past() -> None:
    ring = filled()
    ring.put(ticks(104), [B, A], np.array([[7.0, 9.0]]))
    assert ring.keys == [A, B]
    np.testing.assert_array_equal(ring.rows()[1][-2:], [[3, np.nan], [9, 7]])


def test_a_series_without_values_is_forgotten() -> None:
    ring = filled()
    ring.put(ticks(104), [B], column(7))
    ring.advance(108)
    ring.drop_empty()
    assert ring.keys == [A, B]
    ring.advance(109)
    ring.put(ticks(109), [A], column(9))
    ring.drop_empty()
    assert ring.keys == [A]


@pytest.mark.parametrize(("capacity", "kept"), [(3, [2, 3, 4]), (7, [np.nan, np.nan, 0, 1, 2, 3, 4])])
def test_resized(capacity: int, kept: list[float]) -> None:
    ring = filled().resized(capacity)
    assert ring.newest == 104
    np.testing.assert_array_equal(ring.rows()[1][:, 0], kept)


@given(st.lists(st.integers(1, 9), max_size=40), st.integers(2, 12))
def test_it_remembers_like_a_dictionary(leaps: list[int], capacity: int) -> None:
    ring, known, now = Ring(capacity), {}, 0
    for leap in leaps:
        now += leap
        ring.advance(now)
        ring.put(ticks(now), [A], column(now))
        known[now] = float(now)
    at, values = ring.rows()
    expected = [known.get(int(tick), np.nan) for tick in at]
    np.testing.assert_array_equal(values[:, 0] if ring.keys else np.full(capacity, np.nan), expected)
