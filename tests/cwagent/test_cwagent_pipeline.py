"""A scrape through both halves: types, values, what counters gained, declarations, dimensions."""

from __future__ import annotations

import pytest
from cwagent_cases import BUSY, GAUGE, IDLE, JOB, UTIL, agent, declaration, target

from gpuworkshop.cwagent.agent_config import AgentConfig
from gpuworkshop.cwagent.pipeline import Processed, Scrape, Series, process
from gpuworkshop.metrics.exposition import parse_exposition

ALL = declaration(source_labels=["job"], label_matcher="", metric_selectors=["."], dimensions=[["job"], []])


def scrape(
    page: str, config: AgentConfig | None, time_ms: int = 0, before: Processed | None = None, jobs: str = JOB
) -> Processed:
    followed = target(
        jobs,
        __meta_kubernetes_pod_container_name="nvidia-dcgm-exporter",
        __meta_kubernetes_pod_node_name="n1",
    )
    return process(
        Scrape(followed, parse_exposition(page), time_ms), config, before.baseline if before else None
    )


def one(page: str, config: AgentConfig | None, jobs: str = JOB) -> Series:
    (series,) = scrape(page, config, jobs=jobs).series
    return series


@pytest.mark.parametrize(
    ("page", "outcome", "kind"),
    [
        ("# TYPE m gauge\nm 1", "metric", "gauge"),
        ("# TYPE m counter\nm 1", "metric", "counter"),
        ("# TYPE m_total counter\nm_total 1", "metric", "counter"),
        ("# TYPE m counter\nm_total 1\n# EOF", "metric", "counter"),
        ("# TYPE m summary\nm_count 1", "metric", "summary"),
        ('# TYPE m summary\nm{quantile="0.5"} 1', "metric", "summary"),
        ("# TYPE workers_count gauge\nworkers_count 1", "metric", "gauge"),
        ("m 1", "dropped", ""),
        ("# TYPE m untyped\nm 1", "dropped", ""),
        ("# TYPE m unknown\nm 1", "dropped", "unknown"),
        ('# TYPE m histogram\nm_bucket{le="1"} 1', "dropped", "histogram"),
        ("# TYPE m info\nm_info 1\n# EOF", "dropped", ""),
        ("# TYPE up gauge\nup 1", "dropped", "gauge"),
        ("# TYPE scrape_x gauge\nscrape_x 1", "dropped", "gauge"),
        ("# TYPE m gauge\nm NaN", "dropped", "gauge"),
        ("# TYPE m gauge\nm -Inf", "dropped", "gauge"),
    ],
)
def test_types_and_values(page: str, outcome: str, kind: str) -> None:
    series = one(page, agent(ALL))
    assert (series.outcome, series.kind) == (outcome, kind)
    assert series.reason


def test_the_type_is_looked_up_under_the_name_before_relabelling() -> None:
    rename = JOB + "\nmetric_relabel_configs: [{target_label: __name__, replacement: renamed}]"
    series = one("# TYPE m gauge\nm 1", agent(ALL), rename)
    assert (series.name, series.kind, series.labels["prom_metric_type"]) == ("renamed", "gauge", "gauge")


def test_counters_become_what_was_added() -> None:
    values: list[float | None] = []
    before = None
    for time_ms, value in [
        (0, "5"),
        (60_000, "8"),
        (120_000, "2"),
        (180_000, "NaN"),
        (240_000, "9"),
        (300_000, "9"),
        (600_001, "12"),
    ]:
        before = scrape(f"# TYPE c counter\nc {value}", agent(ALL), time_ms, before)
        values.append(before.series[0].value)
    # first: nothing; reset: the value; NaN takes the baseline away, and so do five minutes
    assert values == [None, 3, 2, None, None, 0, None]


def test_of_a_summary_only_sum_and_count_are_deltas() -> None:
    page = '# TYPE s summary\ns{quantile="0.5"} 3\ns_sum 10\ns_count 4'
    first = scrape(page, agent(ALL))
    second = scrape(page.replace("10", "15"), agent(ALL), 1000, first)
    assert [each.value for each in first.series] == [3, None, None]
    assert [each.value for each in second.series] == [3, 5, 0]


def test_a_busy_gpu_comes_under_both_sets_and_an_idle_one_under_its_node() -> None:
    busy, idle = scrape(GAUGE + BUSY + IDLE, agent()).series
    assert busy.sets == (
        ("ClusterName", "gpu", "namespace", "pod"),
        ("ClusterName", "NodeName", "Service", "gpu"),
    )
    assert idle.sets == (("ClusterName", "NodeName", "Service", "gpu"),)
    assert (busy.labels["ClusterName"], busy.labels["pod"]) == ("lab", "train-0")


def test_a_cluster_name_of_the_series_stays() -> None:
    assert one('# TYPE m gauge\nm{ClusterName="mine"} 1', agent(ALL)).labels["ClusterName"] == "mine"


def test_matchers_may_match_anywhere_and_a_missing_label_is_empty() -> None:
    joined = declaration(source_labels=["job", "gone", "gpu"], label_matcher="^dcgm;;0$", dimensions=[[]])
    assert one(GAUGE + BUSY, agent(joined)).outcome == "metric"
    assert one(GAUGE + BUSY, agent(joined | {"label_matcher": "cg"})).outcome == "metric"
    assert one(GAUGE + BUSY, agent(joined | {"label_separator": "/"})).outcome == "metric"
    assert one(GAUGE + BUSY, agent(joined | {"label_matcher": "^cg"})).outcome == "log"


def test_all_matching_declarations_apply_and_their_sets_are_joined() -> None:
    first = declaration(dimensions=[["gpu", "job"], ["job"]])
    second = declaration(dimensions=[["job"], ["job", "gpu"], ["pod"]])
    series = one(GAUGE + BUSY, agent(first, second))
    assert series.sets == (("gpu", "job"), ("job",), ("pod",))
    assert series.matched == (0, 1)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"metric_selectors": ["^OTHER"]}, "no metric_selectors select its name"),
        ({"label_matcher": "nginx"}, "no label_matcher matches"),
        ({"dimensions": [["gone", "gpu"]]}, "a label that it lacks: gone"),
        ({"dimensions": []}, "no usable dimension set"),
        ({"source_labels": []}, "no declaration that the agent heeds"),
    ],
)
def test_why_a_series_is_only_logged(changes: dict[str, object], why: str) -> None:
    series = one(GAUGE + BUSY, agent(declaration(**changes)))
    assert (series.outcome, series.sets) == ("log", ())
    assert why in series.reason


def test_a_lone_broken_matcher_makes_every_label_a_dimension() -> None:
    series = one("# TYPE m gauge\nm 1", agent(declaration(label_matcher="*")))
    assert series.outcome == "metric"
    assert series.sets == (("ClusterName", "NodeName", "Service", "instance", "job", "prom_metric_type"),)


def test_prometheus_alone() -> None:
    keep = JOB + f"\nmetric_relabel_configs: [{{source_labels: [__name__], action: keep, regex: {UTIL}}}]"
    stored, dropped = scrape(GAUGE + BUSY + "other 1\n", None, jobs=keep).series
    assert (stored.outcome, stored.value, dropped.outcome) == ("metric", 97, "dropped")
    assert "prom_metric_type" not in stored.labels
    assert dropped.reason.startswith("metric_relabel_configs[0] drops it: keep on [__name__]")


def test_a_series_without_a_name_is_dropped() -> None:
    nameless = JOB + "\nmetric_relabel_configs: [{action: labeldrop, regex: __name__}]"
    assert one(GAUGE + BUSY, agent(), nameless).reason == "a metric rule takes its name away"
