"""Targets: defaults, rules, and what stands in where nobody says what discovery found."""

from __future__ import annotations

import pytest
from cwagent_cases import BLOG_JOB, JOB, SERVICE_JOB, job, target

from gpuworkshop.cwagent import discovery
from gpuworkshop.cwagent.scrape_config import parse_scrape_config
from gpuworkshop.cwagent.targets import follow_target, follow_targets


def test_meta_labels_go_and_the_instance_is_the_address() -> None:
    (kept,) = follow_targets([job()], [])
    assert kept.kept
    assert kept.labels == {
        "job": "dcgm",
        "instance": "10.0.3.17:9400",
        "Service": "nvidia-dcgm-exporter",
        "NodeName": "ip-10-0-3-10.ec2.internal",
    }
    assert (kept.url, kept.port, kept.rule) == ("http://10.0.3.17:9400/metrics", "9400", "")


def test_the_published_rule_drops_and_the_rest_is_followed_all_the_same() -> None:
    (dropped,) = follow_targets([job(BLOG_JOB)], [])
    assert not dropped.kept
    assert dropped.rule.endswith(
        "relabel_configs[0]: keep on [__meta_kubernetes_pod_container_name] ^DCGM.*$"
    )
    assert dropped.labels["container_name"] == "nvidia-dcgm-exporter"
    assert dropped.path == "/api/v1/metrics/prometheus"


def test_rules_may_change_scheme_path_and_parameters() -> None:
    text = """
job_name: a
params: {module: [x]}
relabel_configs:
  - {target_label: __scheme__, replacement: https}
  - {source_labels: [__param_module], target_label: __metrics_path__, replacement: /$1}
  - {source_labels: [__scrape_interval__, __scrape_timeout__], target_label: times}
  - {source_labels: [__address__], regex: '(.*):.*', target_label: __address__}
"""
    followed = target(text)
    assert (followed.url, followed.port) == ("https://10.0.0.5/x", "443")
    assert followed.labels == {"job": "a", "instance": "10.0.0.5", "times": "60s;10s"}


def test_a_target_without_an_address_is_not_scraped() -> None:
    followed = follow_target(job("job_name: a"), {"x": "1"})
    assert (followed.kept, followed.rule) == (False, "a: no address is left")


def test_a_given_target_goes_to_every_job_or_to_the_one_it_names() -> None:
    jobs = [job(JOB), job(SERVICE_JOB)]
    assert len(follow_targets(jobs, [{"__address__": "h:1"}])) == 2
    (only,) = follow_targets(jobs, [{"__address__": "h:1", "job": "services"}])
    assert only.job.name == "services"


def test_static_targets_are_followed() -> None:
    (job_with_static,) = parse_scrape_config("job_name: a\nstatic_configs: [{targets: ['h:1', 'h:2']}]")
    assert [each.address for each in follow_targets([job_with_static], [])] == ["h:1", "h:2"]


@pytest.mark.parametrize("role", discovery.LABELS)
def test_the_model_speaks_only_of_what_its_role_gives(role: str) -> None:
    (found,) = discovery.targets_of(job(f"job_name: a\nkubernetes_sd_configs: [{{role: {role}}}]"))
    assert all(discovery.is_known(name, (role,)) for name in found if name.startswith("__meta_"))


def test_known_meta_labels() -> None:
    assert discovery.is_known("__meta_kubernetes_pod_label_app", ("pod",))
    assert not discovery.is_known("__meta_kubernetes_pod_label_", ("pod",))
    assert not discovery.is_known("__meta_kubernetes_pod", ("pod",))
    assert not discovery.is_known("__meta_kubernetes_service_name", ("pod",))
    assert discovery.is_known("__meta_kubernetes_service_name", ("pod", "endpoints"))
