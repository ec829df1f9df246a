"""Findings about targets and scrapes: each on the fault it is for, and not beside it."""

from __future__ import annotations

import pytest
from cwagent_cases import JOB, SERVICE_JOB, case, codes, found, jobs_of, only

from gpuworkshop.cwagent.findings.waves import apparent_period


def test_every_target_dropped() -> None:
    finding = only(case(jobs=JOB.replace(".*dcgm-exporter", "DCGM.*")), "every-target-dropped")
    assert finding.severity == "error"
    assert "relabel_configs[0]" in finding.message
    assert "__meta_kubernetes_pod_container_name='nvidia-dcgm-exporter'" in finding.message


def test_that_other_programs_jobs_drop_the_exporter_is_no_finding() -> None:
    nginx = (
        "job_name: web\nkubernetes_sd_configs: [{role: pod}]\nrelabel_configs: [{action: keep, regex: nginx}]"
    )
    assert found(case(jobs=jobs_of(JOB, nginx))) == []
    assert "every-target-dropped" in codes(case(jobs=nginx))


@pytest.mark.parametrize(
    ("served_at", "path", "wrong"),
    [
        ("", "/api/v1/metrics/prometheus", True),
        ("", "/metrics", False),
        ("http://h:9400/gpu", "/metrics", True),
        ("http://h:9400/gpu", "/gpu", False),
    ],
)
def test_path_not_served(served_at: str, path: str, wrong: bool) -> None:
    built = case(jobs=f"{JOB}\nmetrics_path: {path}", served_at=served_at)
    assert ("path-not-served" in codes(built)) == wrong


def test_a_page_of_another_program_may_lie_anywhere() -> None:
    assert "path-not-served" not in codes(case("# TYPE m gauge\nm 1", f"{JOB}\nmetrics_path: /x"))


def test_port_not_served() -> None:
    to = "target_label: __address__}"
    write = (
        "\n  - {source_labels: [__address__], regex: '([^:]+)(?::PORT+)?', replacement: '${1}:9400', " + to
    )
    discovered = [
        {
            "__address__": "10.0.0.5:8080",
            "__meta_kubernetes_pod_container_name": "dcgm-exporter",
            "__meta_kubernetes_pod_node_name": "n",
        }
    ]
    lost = case(jobs=JOB + write.replace("PORT", "d"), discovered=discovered)
    assert "10.0.0.5:8080" in only(lost, "port-not-served").message
    mended = case(jobs=JOB + write.replace("PORT", r"\d"), discovered=discovered)
    assert "port-not-served" not in codes(mended)
    other = "\n  - {source_labels: [__meta_kubernetes_pod_ip], replacement: '${1}:9401', " + to
    assert "9401" in only(case(jobs=JOB + other), "port-not-served").message


def test_a_static_target_may_be_a_port_forward() -> None:
    static = "job_name: gpu\nstatic_configs: [{targets: ['localhost:31234']}]"
    assert "port-not-served" not in codes(case(jobs=static))


def test_unknown_meta_label() -> None:
    wrong = "\n  - {source_labels: [__meta_kubernetes_pod_node], target_label: Node}"
    finding = only(case(jobs=JOB + wrong), "unknown-meta-label")
    assert finding.severity == "warning"
    assert "__meta_kubernetes_pod_node_name" in finding.fix
    pod = "\n  - {source_labels: [__meta_kubernetes_pod], target_label: pod}"
    assert "drop the rule" in only(case(jobs=JOB + pod), "unknown-meta-label").fix


@pytest.mark.parametrize("more", ["", "\nec2_sd_configs: []"])
def test_a_meta_label_of_another_discovery_is_not_judged(more: str) -> None:
    wrong = "\n  - {source_labels: [__meta_ec2_tag_Name], target_label: Node}"
    assert ("unknown-meta-label" in codes(case(jobs=JOB + wrong + more))) == (not more)


def test_pod_moved_to_exported() -> None:
    pod = JOB + "\n  - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}"
    moved = case(jobs=pod.replace("honor_labels: true", "honor_labels: false"))
    assert "pod to exported_pod" in only(moved, "pod-moved-to-exported").message
    assert "pod-moved-to-exported" not in codes(case(jobs=pod))


def test_the_exporters_own_pod_on_idle_gpus() -> None:
    pod = JOB + "\n  - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}"
    assert only(case(jobs=pod), "exporters-pod-on-idle-gpus").severity == "warning"


@pytest.mark.parametrize(
    ("section", "all_of_it"), [("{role: pod}", True), ("{role: pod, selectors: [{role: pod}]}", False)]
)
def test_no_keep_rule(section: str, all_of_it: bool) -> None:
    rules = "[{target_label: Service, replacement: dcgm}, {target_label: NodeName, replacement: n}]"
    jobs = f"job_name: a\nkubernetes_sd_configs: [{section}]\nrelabel_configs: {rules}"
    assert ("no-keep-rule" in codes(case(jobs=jobs))) == all_of_it
    assert "no-keep-rule" not in codes(case())


@pytest.mark.parametrize(
    ("interval", "wave_s", "hidden"), [(60, 40, True), (20, 40, True), (15, 40, False), (60, 360, False)]
)
def test_wave_not_showable(interval: int, wave_s: float, hidden: bool) -> None:
    jobs = JOB.replace("scrape_interval: 10s", f"scrape_interval: {interval}s")
    assert ("wave-not-showable" in codes(case(jobs=jobs, wave_s=wave_s))) == hidden


def test_a_wave_of_40_s_sampled_each_minute_looks_like_one_of_120_s() -> None:
    assert apparent_period(40, 60) == 120
    assert apparent_period(60, 60) == float("inf")
    assert "one of 120 s" in only(case(jobs=JOB.replace("10s", "60s")), "wave-not-showable").message


def test_series_doubled_by_two_jobs() -> None:
    finding = only(case(jobs=jobs_of(JOB, SERVICE_JOB)), "series-doubled")
    assert "'dcgm' and 'services'" in finding.message
    elsewhere = (
        SERVICE_JOB + "\nmetric_relabel_configs: [{action: drop, source_labels: [__name__], regex: DCGM.*}]"
    )
    assert "series-doubled" not in codes(case(jobs=jobs_of(JOB, elsewhere)))


@pytest.mark.parametrize(("limit", "exceeded"), [(1, True), (2, False), (0, False)])
def test_sample_limit_exceeded(limit: int, exceeded: bool) -> None:
    assert ("sample-limit-exceeded" in codes(case(jobs=f"{JOB}\nsample_limit: {limit}"))) == exceeded
