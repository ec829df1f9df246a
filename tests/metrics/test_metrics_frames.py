"""The wide frame: its columns, and that no two series ever become one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuworkshop.metrics import frames

NAMES = ["pod", "exported_pod", "namespace", "gpu", "hostname", "UUID", "GPU_I_ID", "__name__", "job"]
LABELS = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["a", "b"]))


def test_a_frame_has_the_shape_that_all_sources_share() -> None:
    values = np.array([[1.0, np.nan, 3.0]])
    frame = frames.wide(np.array([1700000000, 1700000001, 1700000002.5]), values, [{"pod": "a", "gpu": "0"}])
    assert frame.index.tolist() == list(
        pd.to_datetime([1700000000000, 1700000001000, 1700000002500], unit="ms", utc=True)
    )
    assert frame.index.name == "time"
    assert [tuple(each) for each in frame.columns] == [("", "a", "", "", "0")]
    np.testing.assert_equal(frame.iloc[:, 0].to_numpy(), [1, np.nan, 3])
    assert np.shares_memory(frame.to_numpy(), values)


@pytest.mark.parametrize(
    ("labels", "place"),
    [
        (
            {"pod": "p", "namespace": "n", "container": "c", "node": "x", "gpu": "1"},
            ("n", "p", "c", "x", "1"),
        ),
        ({"Hostname": "x"}, ("", "", "", "x", "")),
        ({"hostname": "x"}, ("", "", "", "x", "")),
        ({"node": "x", "hostname": "exporter-pod"}, ("", "", "", "x", "")),
        ({"pod": "exporter", "exported_pod": "work"}, ("", "work", "", "", "")),
        ({"namespace": "gpu-operator", "exported_namespace": "ml"}, ("ml", "", "", "", "")),
        ({"container": "exporter", "exported_container": "main"}, ("", "", "main", "", "")),
    ],
)
def test_where_a_series_belongs(labels: dict[str, str], place: tuple[str, ...]) -> None:
    assert frames.columns([labels]).tolist() == [place]


def test_a_gpu_without_a_pod_is_not_the_exporters() -> None:
    used = {"job": "dcgm", "gpu": "0", "pod": "exporter", "exported_pod": "work"}
    idle = {"job": "dcgm", "gpu": "1", "pod": "exporter"}
    other = {"job": "other", "gpu": "2", "pod": "mine"}
    pods = frames.columns([used, idle, other]).get_level_values("pod")
    assert pods.tolist() == ["work", "", "mine"]


def test_several_metrics_are_told_apart_by_name() -> None:
    columns = frames.columns([{"__name__": name, "gpu": gpu} for name in "ab" for gpu in "01"])
    assert columns.names == [*frames.LEVELS, "__name__"]


def test_only_labels_that_tell_apart_are_added() -> None:
    both = {"gpu": "0", "UUID": "GPU-1", "GPU_I_PROFILE": "1g.18gb"}
    columns = frames.columns([{**both, "GPU_I_ID": "1"}, {**both, "GPU_I_ID": "2"}])
    assert columns.names == [*frames.LEVELS, "GPU_I_ID"]


def test_two_exporters_pods_are_told_apart() -> None:
    columns = frames.columns([{"pod": pod, "exported_pod": "work"} for pod in ("old", "new")])
    assert columns.names == [*frames.LEVELS, "target_pod"]
    assert columns.is_unique


def test_labels_asked_for_come_once() -> None:
    columns = frames.columns([{"UUID": "u"}], ["UUID", "pod", "UUID", "absent"])
    assert columns.names == [*frames.LEVELS, "UUID", "absent"]
    assert columns.tolist() == [("", "", "", "", "", "u", "")]


def test_no_series_keep_the_levels() -> None:
    assert frames.columns([], ["UUID"]).names == [*frames.LEVELS, "UUID"]


@settings(deadline=None, max_examples=200, derandomize=True)
@given(st.lists(LABELS, max_size=12, unique_by=lambda labels: tuple(sorted(labels.items()))))
def test_no_two_series_are_merged(series: list[dict[str, str]]) -> None:
    columns = frames.columns(series)
    assert columns.is_unique
    assert len(columns) == len(series)
    assert len(set(columns.names)) == len(columns.names)
