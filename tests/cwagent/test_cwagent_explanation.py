"""The whole story: the published walkthrough, our own configuration, and inputs that cannot be read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cwagent_cases import (
    BLOG_AGENT,
    BLOG_JOB,
    BUSY,
    GAUGE,
    IDLE,
    JOB,
    PAGE,
    SECOND,
    UTIL,
    agent_text,
    declaration,
)

from gpuworkshop.cwagent.explanation import Explanation, explain
from gpuworkshop.cwagent.inputs import read_text
from gpuworkshop.deploy import manifests
from gpuworkshop.metrics import catalog

SHARED = Path(os.environ.get("GPUWORKSHOP_SHARED", Path(__file__).parents[3] / "shared"))
STOCK = SHARED / "data" / "stock-service-endpoints-job.yaml"
MANIFEST = manifests.path("cloudwatch-agent")


def ours() -> tuple[str, str]:
    return read_text(str(MANIFEST), ".yaml"), read_text(str(MANIFEST), ".json")


def codes(explanation: Explanation) -> list[str]:
    return [finding.code for finding in explanation.findings]


def test_every_fault_of_the_published_walkthrough_is_found() -> None:
    story = explain(PAGE, BLOG_JOB, BLOG_AGENT)
    assert story.failed
    assert set(codes(story)) == {
        "every-target-dropped",
        "path-not-served",
        "matcher-matches-nothing",
        "dimension-on-no-series",
        "pods-merged",
        "idle-gpus-lost",
        "unknown-meta-label",
        "wave-not-showable",
        "dollar-in-replacement",
        "no-units",
        "only-logged",
        "cluster-name-not-set",
    }
    assert {row.outcome for row in story.rows} == {"dropped"}


@pytest.mark.parametrize(
    "page", [PAGE, GAUGE + BUSY + SECOND + IDLE, GAUGE + IDLE], ids=["3.1", "mixed", "idle"]
)
def test_our_own_configuration_has_no_finding(page: str) -> None:
    story = explain(page, *ours())
    assert codes(story) == []
    metrics = [row for row in story.rows if row.outcome == "metric"]
    assert metrics
    assert all(row.unit for row in metrics)
    assert {row.outcome for row in story.rows} <= {"metric", "dropped"}


@pytest.mark.parametrize("container", ["dcgm-exporter", "nvidia-dcgm-exporter"])
def test_our_own_configuration_keeps_the_exporter_of_each_chart_and_nothing_else(container: str) -> None:
    pod = {
        "__address__": "10.0.0.5:9400",
        "__meta_kubernetes_pod_container_name": container,
        "__meta_kubernetes_pod_container_port_number": "9400",
        "__meta_kubernetes_pod_node_name": "n",
    }
    other = pod | {"__meta_kubernetes_pod_container_name": "web"}
    assert [target.kept for target in explain(PAGE, *ours(), discovered=[pod, other]).targets] == [
        True,
        False,
    ]


def test_our_own_configuration_knows_only_names_of_the_catalogue() -> None:
    rows = explain(PAGE, *ours()).rows
    known = {name for quantity in catalog.quantities() for name in quantity.names.values()}
    units = json.loads(ours()[1])["logs"]["metrics_collected"]["prometheus"]["emf_processor"]["metric_unit"]
    assert set(units) == {row.name for row in rows if row.outcome == "metric"}
    assert set(units) - known <= {
        "DCGM_FI_DEV_ENC_UTIL",
        "DCGM_FI_DEV_DEC_UTIL",
        "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    }


@pytest.mark.skipif(
    not STOCK.exists(), reason="the stock job is not here; test_cwagent_findings has its like"
)
def test_the_stock_job_beside_a_mended_one_doubles_every_series() -> None:
    scrape, config = ours()
    stock = "".join(f"  {line}\n" for line in STOCK.read_text().splitlines())
    assert "series-doubled" in codes(explain(PAGE, scrape + stock, config))
    blog = explain(PAGE, f"{BLOG_JOB}\n{STOCK.read_text()}", BLOG_AGENT)
    assert "matcher-matches-nothing" not in codes(blog)
    assert {row.outcome for row in blog.rows if row.job == "kubernetes-service-endpoints"} == {
        "metric",
        "log",
    }


def test_the_json_has_the_promised_shape() -> None:
    story = json.loads(json.dumps(explain(PAGE, *ours()).as_json()))
    assert set(story) == {"targets", "series", "findings", "cost"}
    (target,) = story["targets"]
    assert (target["kept"], target["rule"]) == (True, None)
    assert target["labels"]["job"] == "dcgm-exporter"
    first = next(row for row in story["series"] if row["name"] == UTIL)
    assert set(first) == {"name", "labels", "outcome", "reason", "namespace", "dimensions", "unit"}
    assert (first["namespace"], first["unit"]) == ("ContainerInsights/Prometheus", "Percent")
    assert first["dimensions"] == [
        ["ClusterName", "gpu", "namespace", "pod"],
        ["ClusterName", "NodeName", "Service", "gpu"],
    ]
    assert first["labels"]["pod"] == "gpu-burn-c68d8c774-ltg9s"


def test_a_dropped_target_shows_what_its_rules_saw() -> None:
    story = explain(PAGE, BLOG_JOB, BLOG_AGENT).as_json()
    (target,) = story["targets"]
    assert target["labels"]["__meta_kubernetes_pod_container_name"] == "nvidia-dcgm-exporter"
    assert "relabel_configs[0]" in target["rule"]
    assert set(story["findings"][0]) == {"code", "severity", "message", "fix"}


def test_prometheus_alone() -> None:
    story = explain(GAUGE + BUSY, JOB)
    assert story.as_json()["cost"] == {}
    assert [(row.outcome, row.namespace) for row in story.rows] == [("metric", None)]
    assert codes(story) == []
    assert set(codes(explain(PAGE, BLOG_JOB))) == {
        "every-target-dropped",
        "path-not-served",
        "unknown-meta-label",
        "wave-not-showable",
    }


@pytest.mark.parametrize(
    ("page", "scrape", "config", "code", "said"),
    [
        (PAGE, JOB, '{\n "logs": {},\n}', "invalid-json", "line 3"),
        (PAGE, "a: [", agent_text(), "invalid-scrape-config", "line 1"),
        (PAGE + "half a li", JOB, agent_text(), "invalid-metrics", "line 70"),
    ],
)
def test_what_cannot_be_read_is_a_finding_with_its_line(
    page: str, scrape: str, config: str, code: str, said: str
) -> None:
    story = explain(page, scrape, config)
    assert story.failed
    (finding,) = [each for each in story.findings if each.code == code]
    assert said in finding.message


def test_a_matcher_that_does_not_compile_lets_everything_out() -> None:
    story = explain(
        GAUGE + BUSY + "# TYPE other gauge\nother 1\n", JOB, agent_text(declaration(label_matcher="*"))
    )
    assert {row.outcome for row in story.rows} == {"metric"}
    assert all(set(row.dimensions[0]) == set(row.labels) for row in story.rows)
