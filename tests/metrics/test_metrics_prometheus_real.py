"""The reader against a real Prometheus with a written history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from stored_history import SECONDS, History

from gpuworkshop.errors import BadAnswer, NoData, QueryError
from gpuworkshop.metrics import PrometheusReader, catalog, frames, waves

pytestmark = pytest.mark.real


def test_a_range_is_the_wide_frame(history: History, reader: PrometheusReader) -> None:
    end = history.start + SECONDS - 1
    frame = reader.range("DCGM_FI_DEV_GPU_UTIL", end - 119, end, "1s")
    assert frame.shape == (120, 1)
    assert frame.columns.names == list(frames.LEVELS)
    assert [tuple(each) for each in frame.columns] == [("default", "wave", "main", "node-1", "0")]
    assert isinstance(frame.index, pd.DatetimeIndex)
    assert (frame.index.name, str(frame.index.tz)) == ("time", "UTC")
    assert frame.index[0] == pd.Timestamp(end - 119, unit="s", tz="UTC")
    assert (frame.dtypes == np.float64).all()
    assert frame.attrs == {
        "metric": "DCGM_FI_DEV_GPU_UTIL",
        "unit": "%",
        "source": f"Prometheus {history.url}",
        "query": "DCGM_FI_DEV_GPU_UTIL",
        "simulated": "H200 trace",
        "backfilled_before": None,
        "warnings": [],
        "infos": [],
    }


def test_the_wave_is_read_back(history: History, reader: PrometheusReader) -> None:
    end = history.start + SECONDS - 1
    frame = reader.range("DCGM_FI_DEV_GPU_UTIL", end - 150, end, 1)
    wave = waves.measure(frame.iloc[:, 0])
    assert wave.cycles >= 3
    assert wave.period_s == pytest.approx(40, abs=1)
    assert wave.duty == pytest.approx(0.5, abs=0.03)
    assert wave.resolved


def test_the_same_wave_sampled_each_minute_lies(history: History, reader: PrometheusReader) -> None:
    end = history.start + SECONDS - 1
    wave = waves.measure(reader.range("DCGM_FI_DEV_GPU_UTIL", end - 590, end, "1m").iloc[:, 0])
    assert wave.period_s == pytest.approx(120, abs=1)
    assert not wave.resolved


def test_a_quantity_finds_the_names_of_all_releases_in_one_unit(
    history: History, reader: PrometheusReader
) -> None:
    end = history.start + SECONDS - 1
    frame = reader.range(catalog.find("gpu utilization"), end - 100, end, 1)
    by_pod = frame.droplevel(["namespace", "container", "node"], axis=1)
    assert {tuple(each) for each in by_pod.columns} == {("wave", "0"), ("train", "0"), ("", "1")}
    assert set(by_pod["wave", "0"]) == {0, 100}
    assert by_pod["train", "0"].to_numpy() == pytest.approx(36)
    assert (frame.attrs["metric"], frame.attrs["unit"]) == ("GPU utilisation", "%")
    assert frame.attrs["simulated"] == "H200 trace"


def test_the_workload_is_the_exported_pod_and_no_pod_is_the_exporters(
    history: History, reader: PrometheusReader
) -> None:
    end = history.start + SECONDS - 1
    frame = reader.range("DCGM_FI_DEV_GPU_UTIL_RATIO", end - 5, end, 1)
    assert {tuple(each) for each in frame.columns} == {
        ("ml", "train", "main", "node-2", "0"),
        ("", "", "", "node-2", "1"),
    }
    assert frame.attrs["simulated"] == ""
    assert frame.attrs["unit"] == "ratio 0-1"


def test_instances_of_one_gpu_stay_apart(history: History, reader: PrometheusReader) -> None:
    end = history.start + SECONDS - 1
    frame = reader.range("DCGM_FI_PROF_SM_ACTIVE", end - 5, end, 1)
    assert frame.columns.names == [*frames.LEVELS, "GPU_I_ID"]
    assert frame.xs("3", axis=1, level="GPU_I_ID").to_numpy() == pytest.approx(0.3)


def test_missing_points_are_nan_and_odd_values_are_kept(history: History, reader: PrometheusReader) -> None:
    start = history.start + SECONDS - 600
    power = reader.range("DCGM_FI_DEV_POWER_USAGE", start, start + 599, 1).iloc[:, 0]
    assert 58 <= power.isna().sum() <= 60
    assert set(power.dropna()) == {690.5}
    odd = reader.range("odd_values", start, start + 3, 1).iloc[:, 0].to_numpy()
    np.testing.assert_equal(odd, [np.nan, np.inf, -np.inf, 1.5])


def test_more_points_than_one_answer_holds_are_joined(history: History, reader: PrometheusReader) -> None:
    frame = reader.range("counting", history.start, history.start + SECONDS - 1, 1)
    pods = frame.columns.get_level_values("pod").tolist()
    whole, late = frame.iloc[:, pods.index("all")], frame.iloc[:, pods.index("late")]
    np.testing.assert_array_equal(whole, np.arange(SECONDS))
    assert frame.index.is_unique
    assert late[:11_500].isna().all()
    assert (late[11_500:] == 1).all()


def test_moments_and_steps_in_any_spelling(history: History, reader: PrometheusReader) -> None:
    start = datetime.fromtimestamp(history.start, UTC)
    frame = reader.range('counting{pod="all"}', start, start + timedelta(minutes=1), timedelta(seconds=15))
    assert frame.iloc[:, 0].tolist() == [0, 15, 30, 45, 60]


def test_a_syntax_error_is_told_in_prometheus_words(history: History, reader: PrometheusReader) -> None:
    with pytest.raises(QueryError, match="parse error: unclosed left parenthesis") as caught:
        reader.range("sum(DCGM_FI_DEV_GPU_UTIL", history.start, history.start + 10, 1)
    assert "sum(DCGM_FI_DEV_GPU_UTIL" in str(caught.value)
    assert caught.value.status == 400
    with pytest.raises(QueryError):
        reader.latest("sum(")


def test_no_results_name_metrics_that_are_near(history: History, reader: PrometheusReader) -> None:
    with pytest.raises(NoData, match="no series for sum by") as caught:
        reader.range("sum by (pod) (DCGM_FI_DEV_GPU_UTL)", history.start, history.start + 10, 1)
    assert caught.value.near[0] == "DCGM_FI_DEV_GPU_UTIL"
    with pytest.raises(NoData, match="the metric exists"):
        reader.latest('counting{pod="nobody"}')
    with pytest.raises(NoData, match="there is no metric qqqqqq here"):
        reader.latest("qqqqqq")


def test_an_empty_frame_when_that_is_welcome(history: History, reader: PrometheusReader) -> None:
    frame = reader.range("qqqqqq", history.start, history.start + 9, 1, empty_ok=True)
    assert frame.shape == (10, 0)
    assert frame.columns.names == list(frames.LEVELS)
    assert reader.latest("qqqqqq", empty_ok=True).empty


def test_scalars_vectors_and_range_vectors(history: History, reader: PrometheusReader) -> None:
    assert reader.latest("1 + 1").iloc[0, 0] == 2
    at = history.start + 100
    frame = reader.latest(f"counting[5s] @ {at}")
    assert frame.shape[0] in (5, 6)  # the left end belongs to the range up to Prometheus 2
    assert frame.iloc[-1, 0] == 100
    with pytest.raises(BadAnswer, match="string"):
        reader.latest('"just text"')


def test_a_query_of_any_length(reader: PrometheusReader) -> None:
    assert reader.latest(" + ".join(["1"] * 10_000)).iloc[0, 0] == 10_000


def test_labels_asked_for_are_levels(history: History, reader: PrometheusReader) -> None:
    end = history.start + SECONDS - 1
    frame = reader.range("DCGM_FI_DEV_GPU_UTIL", end, end, 1, labels=["UUID", "absent", "pod"])
    assert frame.columns.names == [*frames.LEVELS, "UUID", "absent"]
    assert tuple(frame.columns[0])[-2:] == ("GPU-a", "")


def test_names_and_health(reader: PrometheusReader) -> None:
    assert reader.healthy()
    assert {"DCGM_FI_DEV_GPU_UTIL", "counting", "odd_values"} <= set(reader.metric_names())
