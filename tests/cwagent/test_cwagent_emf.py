"""The log events, to the letter."""

from __future__ import annotations

import json

from cwagent_cases import BUSY, GAUGE, UTIL, agent, declaration, target

from gpuworkshop.cwagent.agent_config import AgentConfig
from gpuworkshop.cwagent.emf import LogEvent, log_events
from gpuworkshop.cwagent.pipeline import Scrape, process
from gpuworkshop.metrics.exposition import parse_exposition

NOW = 1_764_600_000_123
PLAIN = "job_name: dcgm"


def events(page: str, config: AgentConfig, job: str = PLAIN) -> list[LogEvent]:
    scrape = Scrape(target(job), parse_exposition(page), NOW)
    return log_events(process(scrape, config).series, config)


def test_an_event_is_exact() -> None:
    by_job = declaration(source_labels=["job"], dimensions=[["pod", "gpu"], ["job"]])
    page = GAUGE + BUSY + f"# TYPE DCGM_FI_X gauge\nDCGM_FI_X{BUSY[len(UTIL) : BUSY.index('}') + 1]} 0.5\n"
    (event,) = events(page, agent(by_job))
    assert (event.group, event.stream, event.time_ms) == (
        "/aws/containerinsights/lab/prometheus",
        "dcgm",
        NOW,
    )
    assert json.dumps(event.content) == json.dumps(
        {
            "CloudWatchMetrics": [
                {
                    "Namespace": "ContainerInsights/Prometheus",
                    "Dimensions": [["gpu", "pod"], ["job"]],
                    "Metrics": [{"Name": UTIL, "Unit": "Percent"}, {"Name": "DCGM_FI_X"}],
                }
            ],
            "Timestamp": str(NOW),
            "Version": "0",
            "gpu": "0",
            "UUID": "GPU-a",
            "namespace": "team",
            "pod": "train-0",
            "container": "main",
            "job": "dcgm",
            "instance": "10.0.0.5:9400",
            "prom_metric_type": "gauge",
            "ClusterName": "lab",
            UTIL: 97,
            "DCGM_FI_X": 0.5,
        }
    )


def test_what_no_declaration_took_is_logged_in_the_same_event() -> None:
    by_job = declaration(source_labels=["job"], dimensions=[["job"]], metric_selectors=["^a$"])
    (event,) = events("# TYPE a gauge\na 1\n# TYPE b gauge\nb 2\n", agent(by_job))
    assert [metric["Name"] for metric in event.content["CloudWatchMetrics"][0]["Metrics"]] == ["a"]
    assert event.content["b"] == 2


def test_an_event_without_metrics_has_no_directive() -> None:
    (event,) = events("# TYPE b gauge\nb 2\n", agent())
    assert "CloudWatchMetrics" not in event.content
    assert (event.content["Version"], event.content["Timestamp"]) == ("0", str(NOW))


def test_other_declarations_are_another_directive_and_other_labels_another_event() -> None:
    first = declaration(source_labels=["job"], dimensions=[["job"]], metric_selectors=["a"])
    second = declaration(source_labels=["job"], dimensions=[[]], metric_selectors=["b"])
    page = '# TYPE a gauge\na 1\na{x="1"} 1\n# TYPE b gauge\nb 2\n# TYPE c counter\nc 1\n'
    both, alone = events(page, agent(first, second))
    assert [directive["Dimensions"] for directive in both.content["CloudWatchMetrics"]] == [[["job"]], [[]]]
    assert alone.content["x"] == "1"


def test_namespace_and_log_group_may_be_named() -> None:
    config = agent(
        declaration(source_labels=["job"], dimensions=[[]], metric_selectors=["."]),
        log_group_name="mine",
        emf={"metric_namespace": "N"},
    )
    (event,) = events("# TYPE a gauge\na 1", config)
    assert event.group == "mine"
    assert event.content["CloudWatchMetrics"][0]["Namespace"] == "N"


def test_the_exporters_own_time_is_another_event_where_it_is_honoured() -> None:
    by_job = agent(declaration(source_labels=["job"], dimensions=[["job"]], metric_selectors=["."]))
    page = "# TYPE a gauge\na 1 1764600000000\n# TYPE b gauge\nb 2\n"
    assert [event.content["Timestamp"] for event in events(page, by_job)] == ["1764600000000", str(NOW)]
    (noise,) = events("# TYPE a gauge\na 1 1e308\n", by_job)
    assert noise.time_ms == NOW
    (event,) = events(page, by_job, f"{PLAIN}\nhonor_timestamps: false")
    assert event.time_ms == NOW
