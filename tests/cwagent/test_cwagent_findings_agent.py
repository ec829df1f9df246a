"""Findings about the agent's half: each on the fault it is for, and not beside it."""

from __future__ import annotations

import pytest
from cwagent_cases import BUSY, GAUGE, IDLE, JOB, SECOND, UTIL, agent, case, codes, declaration, found, only

from gpuworkshop.cwagent.agent_config import parse_agent_config
from gpuworkshop.cwagent.findings import EVERY


def test_what_is_right_has_no_finding() -> None:
    assert found(case()) == []
    assert len(set(EVERY)) == len(EVERY)


def test_matcher_matches_nothing() -> None:
    finding = only(case(config=agent(declaration(label_matcher="DCGM"))), "matcher-matches-nothing")
    assert "'nvidia-dcgm-exporter'" in finding.message
    without = JOB.replace("target_label: Service", "target_label: Other")
    assert "no series has the label Service" in only(case(jobs=without), "matcher-matches-nothing").message


def test_selectors_that_select_nothing() -> None:
    finding = only(case(config=agent(declaration(metric_selectors=["^NO"]))), "matcher-matches-nothing")
    assert "^NO" in finding.message


def test_matcher_does_not_compile() -> None:
    alone = case(config=agent(declaration(label_matcher="*")))
    assert "every label as a dimension" in only(alone, "matcher-does-not-compile").message
    beside = case(config=agent(declaration(label_matcher="*"), declaration()))
    assert "left out" in only(beside, "matcher-does-not-compile").message


def test_dimension_on_no_series() -> None:
    built = case(config=agent(declaration(dimensions=[["gpu", "Hostname"], ["NodeName", "gpu"]])))
    assert "'Hostname'" in only(built, "dimension-on-no-series").message


def test_when_all_gpus_idle_the_pods_labels_are_not_missed() -> None:
    assert codes(case(GAUGE + IDLE)) == set()


def test_pods_merged_for_want_of_the_gpu() -> None:
    no_gpu = agent(declaration(dimensions=[["namespace", "pod"], ["NodeName", "gpu"]]))
    assert "no label that tells GPUs apart" in only(case(config=no_gpu), "pods-merged").message


def test_series_that_fall_together_in_every_set() -> None:
    by_node = agent(declaration(dimensions=[["NodeName"], ["Service"]]))
    page = GAUGE + BUSY + SECOND
    assert "several series" in only(case(page, config=by_node), "pods-merged").message
    assert "pods-merged" not in codes(case(page))


def test_idle_gpus_lost() -> None:
    lost = agent(declaration(dimensions=[["namespace", "pod", "gpu"]]))
    assert "namespace, pod" in only(case(GAUGE + BUSY, config=lost), "idle-gpus-lost").message
    assert "idle-gpus-lost" not in codes(case(GAUGE + BUSY))


def test_an_application_without_gpus_has_no_idle_ones() -> None:
    lost = agent(declaration(dimensions=[["pod"]], metric_selectors=["m"]))
    assert "idle-gpus-lost" not in codes(case('# TYPE m gauge\nm{pod="a"} 1', config=lost))


def test_no_type_line() -> None:
    finding = only(case(GAUGE + BUSY + IDLE + "DCGM_FI_NEW 1\n"), "no-type-line")
    assert "DCGM_FI_NEW" in finding.message
    dropped = f"{JOB}\nmetric_relabel_configs: [{{action: keep, source_labels: [__name__], regex: {UTIL}}}]"
    assert "no-type-line" not in codes(case(GAUGE + BUSY + IDLE + "DCGM_FI_NEW 1\n", dropped))


@pytest.mark.parametrize(("count", "too_many"), [(100, False), (101, True)])
def test_too_many_metrics_in_a_directive(count: int, too_many: bool) -> None:
    page = "".join(f'# TYPE DCGM_FI_{n} gauge\nDCGM_FI_{n}{{gpu="0"}} 1\n' for n in range(count))
    assert ("too-many-metrics" in codes(case(page))) == too_many


def test_no_units() -> None:
    finding = only(case(config=agent(emf={"metric_unit": {"other": "Percent"}})), "no-units")
    assert (finding.severity, UTIL in finding.message) == ("warning", True)


def test_only_logged() -> None:
    page = GAUGE + BUSY + IDLE + "# TYPE other gauge\nother 1\n"
    assert "other become no metric" in only(case(page), "only-logged").message


def test_dollar_in_replacement() -> None:
    rule = "\n  - {source_labels: [__meta_kubernetes_pod_ip], target_label: ip, replacement: '$1'}"
    assert "relabel_configs[3] ($1)" in only(case(jobs=JOB + rule), "dollar-in-replacement").message
    assert "dollar-in-replacement" not in codes(case(jobs=JOB + rule.replace("$1", "$$1")))


def test_cluster_name_not_set() -> None:
    assert "cluster-name-not-set" in codes(case(config=agent(cluster_name="")))
    rule = "\n  - {target_label: ClusterName, replacement: mine}"
    assert "cluster-name-not-set" not in codes(case(jobs=JOB + rule, config=agent(cluster_name="")))


def test_what_the_agent_forgives_is_told_with_its_line() -> None:
    text = '{"logs": {"metrics_collected": {"prometheus": {"cluster_name": "lab", "emf_processor":\n[]}}}}'
    assert only(case(config=parse_agent_config(text)), "wrong-shape").message.startswith("line 2: ")
    flat = agent(declaration(dimensions=["instance"]), declaration())
    assert '[["instance"]]' in only(case(config=flat), "dimensions-not-nested").fix


def test_errors_come_first() -> None:
    built = case(
        jobs=JOB.replace("10s", "60s"), config=agent(declaration(label_matcher="DCGM"), cluster_name="")
    )
    severities = [finding.severity for finding in found(built)]
    assert severities == sorted(severities)
    assert set(severities) == {"error", "warning"}
