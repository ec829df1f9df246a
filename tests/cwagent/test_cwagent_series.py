"""Labels of the exporter beside those of the target."""

from __future__ import annotations

import pytest
from cwagent_cases import JOB, target

from gpuworkshop.cwagent.series import follow_labels, merged

Labels = dict[str, str]


@pytest.mark.parametrize(
    ("scraped", "of_target", "honor", "after"),
    [
        ({"pod": "w"}, {"pod": "x"}, False, {"pod": "x", "exported_pod": "w"}),
        ({"pod": "w"}, {"pod": "x"}, True, {"pod": "w"}),
        ({"pod": ""}, {"pod": "x"}, True, {"pod": ""}),
        ({"pod": ""}, {"pod": "x"}, False, {"pod": "x"}),
        (
            {"pod": "w", "exported_pod": "v"},
            {"pod": "x"},
            False,
            {"pod": "x", "exported_pod": "v", "exported_exported_pod": "w"},
        ),
        (
            {"a": "1", "exported_a": "2"},
            {"a": "3", "exported_a": "4"},
            False,
            {"a": "3", "exported_a": "4", "exported_exported_a": "1", "exported_exported_exported_a": "2"},
        ),
        ({}, {"job": "j"}, False, {"job": "j"}),
    ],
)
def test_a_clash(scraped: Labels, of_target: Labels, honor: bool, after: Labels) -> None:
    assert merged(scraped, of_target, honor=honor) == after


def test_an_empty_label_is_no_label() -> None:
    labels = follow_labels(
        "m", {"pod": "", "a": "1"}, target(JOB + "\n  - {target_label: pod, replacement: x}")
    )
    assert labels.labels["a"] == "1"
    assert "pod" not in labels.labels


def test_metric_rules_see_the_name_and_the_target() -> None:
    rules = """
metric_relabel_configs:
  - {source_labels: [__name__, job], action: drop, regex: m;dcgm}
"""
    assert follow_labels("m", {}, target(JOB + rules)).dropped_at == 0
    assert follow_labels("n", {}, target(JOB + rules)).dropped_at is None
