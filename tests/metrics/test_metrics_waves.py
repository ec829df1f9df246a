"""Waves: a real H200's, jittered, holed and undersampled ones, and what is no wave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gpuworkshop.errors import NoWave
from gpuworkshop.metrics import frames, waves

TRACE = Path(__file__).resolve().parent.parent / "data" / "metrics-h200-wave.json"


def square(times: np.ndarray, on: float = 20, off: float = 20, high: float = 100) -> pd.Series:
    return pd.Series(np.where(times % (on + off) < on, high, 0.0), index=times)


@pytest.fixture(scope="module")
def trace() -> pd.DataFrame:
    """An H200 at 4 Hz: 130 s of a 20 s on, 20 s off wave, then 28 s of a training-like load."""
    return pd.DataFrame(json.loads(TRACE.read_text())).set_index("t")


@pytest.mark.parametrize("field", ["gpu_util", "power_w", "tensor_active", "temp_c"])
@pytest.mark.parametrize("keep", [1, 4])
def test_a_real_wave(trace: pd.DataFrame, field: str, keep: int) -> None:
    wave = waves.measure(trace.loc[:142, field].iloc[::keep])
    assert wave.period_s == pytest.approx(40, abs=0.2)
    assert wave.duty == pytest.approx(0.5, abs=0.01)
    assert wave.cycles == 3
    assert wave.resolved
    assert wave.sampled_every_s == pytest.approx(keep / 4, abs=0.01)


def test_the_levels_of_a_real_wave(trace: pd.DataFrame) -> None:
    wave = waves.measure(trace.loc[:142, "power_w"])
    assert wave.low == pytest.approx(124, abs=2)
    assert wave.high == pytest.approx(691, abs=3)


@pytest.mark.parametrize("shuffled", [True, False], ids=["time stamps jitter", "scrapes jitter"])
def test_jitter_of_a_second_over_three_periods(shuffled: bool) -> None:
    found = []
    for seed in range(200):
        dice = np.random.default_rng(seed)
        nominal = np.arange(130.0) + dice.uniform(0, 40)
        jittered = nominal + dice.uniform(-1, 1, 130)
        values = square(nominal if shuffled else jittered).to_numpy()
        found.append(waves.measure(pd.Series(values, index=jittered)))
    periods, duties = np.array([wave.period_s for wave in found]), np.array([wave.duty for wave in found])
    assert np.abs(periods - 40).max() <= 1
    assert np.quantile(np.abs(duties - 0.5), 0.98) <= 0.03
    assert min(wave.cycles for wave in found) >= 2


@pytest.mark.parametrize(("on", "off"), [(20, 20), (4, 36), (30, 5), (10, 10), (2, 38)])
def test_any_duty_cycle(on: float, off: float) -> None:
    wave = waves.measure(square(np.arange(0, 400, 0.5), on, off))
    assert wave.on_s == pytest.approx(on, abs=0.6)
    assert wave.off_s == pytest.approx(off, abs=0.6)
    assert wave.duty == wave.on_s / wave.period_s


def test_only_complete_cycles_count() -> None:
    wave = waves.measure(square(np.arange(-5, 107.0)))
    assert (wave.cycles, wave.period_s) == (2, 40)


def test_noise_and_crossings_of_the_middle_count_for_nothing() -> None:
    times = np.arange(0, 300.0)
    noise = np.random.default_rng(1).normal(0, 12, len(times))
    wave = waves.measure(square(times) + noise)
    assert wave.period_s == pytest.approx(40, abs=1)
    assert wave.low == pytest.approx(0, abs=5)


@pytest.mark.parametrize("as_rows", [True, False])
def test_a_gap_is_not_off(as_rows: bool) -> None:
    series = square(np.arange(0, 400.0))
    series[(series.index >= 165) & (series.index < 178)] = np.nan  # amid an on phase
    wave = waves.measure(series if as_rows else series.dropna())
    assert wave.on_s == pytest.approx(20, abs=0.1)
    assert wave.off_s == pytest.approx(20, abs=0.1)
    assert wave.duty == pytest.approx(0.5, abs=0.01)


def test_single_scrapes_that_failed_do_no_harm() -> None:
    series = square(np.arange(0, 200.0))
    series[np.random.default_rng(2).random(200) < 0.05] = np.nan
    assert waves.measure(series).period_s == pytest.approx(40, abs=1)


def test_a_datetime_index_and_the_order_of_rows_do_not_matter() -> None:
    times = np.arange(1_700_000_000.0, 1_700_000_200)
    series = pd.Series(square(times).to_numpy(), index=frames.time_index(times))
    assert waves.measure(series) == waves.measure(series.sample(frac=1, random_state=1))
    assert waves.measure(series).period_s == pytest.approx(40, abs=0.01)
    assert waves.measure(pd.concat([series, series.iloc[:50]])).period_s == pytest.approx(40, abs=0.01)


def test_too_slow_sampling_finds_a_false_wave_and_says_so() -> None:
    wave = waves.measure(square(np.arange(7, 3607, 60.0)))
    assert wave.period_s == pytest.approx(120)
    assert not wave.resolved
    assert waves.measure(square(np.arange(0, 400, 5.0))).resolved
    assert not waves.measure(square(np.arange(0, 400, 6.0))).resolved


def test_what_is_no_wave(trace: pd.DataFrame) -> None:
    dice = np.random.default_rng(3)
    index = np.arange(120.0)
    training = np.clip(dice.normal(36, 3, 120), 0, 100)
    pauses = np.where(dice.random(120) < 0.08, 5, training)
    for values, why in (
        (np.full(120, 100.0), "stays about 100"),
        (np.zeros(120), "stays about 0"),
        (training, "two levels|cycles|regular|stays"),
        (pauses, "cycles|regular"),
        (dice.choice([0.0, 100.0], 120), "regular"),
        (dice.uniform(0, 100, 120), "two levels"),
        (index, "two levels"),
        (np.where(index < 60, 0.0, 100.0), "complete cycles"),
        (np.full(120, np.nan), "only 0 samples"),
        (np.full(120, np.inf), "only 0 samples"),
    ):
        with pytest.raises(NoWave, match=why):
            waves.measure(pd.Series(values, index=index))
    with pytest.raises(NoWave):
        waves.measure(trace.loc[242:, "gpu_util"])
    with pytest.raises(NoWave, match="only 0 samples"):
        waves.measure(pd.Series(dtype=float))


def test_random_on_and_off_is_hardly_ever_a_wave() -> None:
    found = 0
    for seed in range(300):
        values = np.random.default_rng(seed).choice([0.0, 100.0], 120)
        try:
            waves.measure(pd.Series(values))
        except NoWave:
            continue
        found += 1
    assert found <= 3


def test_a_table_has_a_row_a_pod() -> None:
    times = np.arange(0, 200.0)
    values = np.vstack([square(times), square(times, 5, 15), np.full(200, 36.0)])
    frame = frames.wide(times, values, [{"pod": pod, "gpu": "0"} for pod in ("wave", "fast", "flat")])
    table = waves.table(frame).droplevel(["namespace", "container", "node", "gpu"])
    assert table.index.tolist() == ["wave", "fast", "flat"]
    assert table.loc["wave", "period_s"] == pytest.approx(40)
    assert table.loc["fast", "duty"] == pytest.approx(0.25)
    assert table["period_s"].isna().tolist() == [False, False, True]
    assert table["note"].tolist() == ["", "", "it stays about 36"]
    assert waves.table(frame.iloc[:, :0]).empty


def test_a_table_warns_of_a_wave_that_was_sampled_too_rarely() -> None:
    times = np.arange(0, 3000.0, 60)
    frame = frames.wide(times, np.vstack([square(times)]), [{"pod": "wave"}])
    (row,) = waves.table(frame).to_dict("records")
    assert row["period_s"] == pytest.approx(120)
    assert not row["resolved"]
    assert "sampled too rarely" in row["note"]


@pytest.mark.parametrize("shift", [-7.0, 0.0, 3.0, 12.5])
def test_lag(shift: float) -> None:
    times = np.arange(0, 300.0)
    shifted = pd.Series(square(times - shift).to_numpy(), index=times)
    assert waves.lag(square(times), shifted) == pytest.approx(shift, abs=0.6)
    assert waves.lag(square(times), shifted * 6 + 100) == pytest.approx(shift, abs=0.6)


def test_lag_over_other_times_with_holes(trace: pd.DataFrame) -> None:
    slow = square(np.arange(20, 280, 2.0) - 5)
    slow.index = slow.index + 5
    slow.iloc[30:45] = np.nan
    assert waves.lag(square(np.arange(0, 300.0)), slow) == pytest.approx(5, abs=1.1)
    wave = trace.loc[:142]
    assert waves.lag(wave["gpu_util"], wave["power_w"]) == pytest.approx(0.35, abs=0.3)


def test_lag_needs_a_change_and_a_common_time() -> None:
    wave = square(np.arange(0, 100.0))
    with pytest.raises(NoWave, match="does not change"):
        waves.lag(wave, pd.Series(np.ones(100)))
    with pytest.raises(NoWave, match="share only 0 s"):
        waves.lag(wave, square(np.arange(200, 300.0)))
