"""A Prometheus configuration in its three forms, and what is refused, with the line."""

from __future__ import annotations

import pytest
from cwagent_cases import BLOG_JOB, JOB

from gpuworkshop.cwagent.scrape_config import parse_duration, parse_scrape_config
from gpuworkshop.errors import ScrapeConfigError


def indented(text: str, by: str = "    ") -> str:
    return "".join(f"{by}{line}\n" for line in text.strip().splitlines())


WHOLE = f"global: {{scrape_interval: 30s, scrape_timeout: 7s}}\nscrape_configs:\n  -\n{indented(JOB)}"


def test_the_three_forms_give_the_same_job() -> None:
    for text in (JOB, f"-\n{indented(JOB)}", WHOLE):
        (job,) = parse_scrape_config(text)
        assert (job.name, job.interval_s, job.honor_labels, job.roles) == ("dcgm", 10, True, ("pod",))
        assert [rule.action for rule in job.rules] == ["keep", "replace", "replace"]


def test_the_published_job_has_prometheus_defaults() -> None:
    (job,) = parse_scrape_config(BLOG_JOB)
    assert (job.interval_s, job.timeout_s, job.scheme) == (60, 10, "http")
    assert (job.metrics_path, job.sample_limit, job.honor_labels) == (
        "/api/v1/metrics/prometheus",
        10000,
        False,
    )
    assert not job.other_discovery


def test_global_times_are_defaults_and_zero_is_none() -> None:
    (job,) = parse_scrape_config(WHOLE.replace("scrape_interval: 10s", "scrape_interval: 0s"))
    assert (job.interval_s, job.timeout_s) == (30, 7)
    (job,) = parse_scrape_config("job_name: a\nscrape_interval: 5s")
    assert job.timeout_s == 5


def test_static_targets_have_their_labels() -> None:
    (job,) = parse_scrape_config(
        "job_name: a\nstatic_configs: [{targets: ['h:1'], labels: {x: 1}}]\nfile_sd_configs: []"
    )
    assert job.static == ({"x": "1", "__address__": "h:1"},)
    assert job.other_discovery


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("job_name: a\nrelabel_configs:\n  - action: keep\n  - action: replace", 4, "relabel_configs[1]: "),
        ("- job_name: a\n- job_name: a", 2, "found multiple scrape configs"),
        ("- job_name: a\n- nothing: b", 2, "field nothing not found"),
        ("- job_name: ''", 1, "job_name is empty"),
        ("- ", 1, "empty or null scrape config section"),
        ("job_name: a\nscrape_interval: soon", 1, "not a valid duration string"),
        ("job_name: a\nscrape_interval: 5s\nscrape_timeout: 6s", 1, "scrape timeout greater"),
        ("job_name: a\nhonor_labels: maybe", 1, "into bool"),
        ("job_name: a\nsample_limit: -1", 1, "into uint"),
        ("job_name: [a]", 1, "job_name is a text"),
        ("job_name: a\nstatic_configs: [{targets: h}]", 1, "targets and labels"),
        ("job_name: a\nkubernetes_sd_configs: pod", 1, "list of mappings"),
        ("job_name: a\nkubernetes_sd_configs: [{}]", 1, "role missing"),
        ("job_name: a\nkubernetes_sd_configs: [{role: Pod}]", 1, 'unknown Kubernetes SD role "Pod"'),
        ("job_name: a\nkubernetes_sd_configs: [{role: [pod]}]", 1, "unknown Kubernetes SD role"),
        ("job_name: a\nstatic_configs: [{targets: ['http://h/']}]", 1, "is not a valid hostname"),
        ("job_name: a\nparams: {x: y}", 1, "params"),
        ("a: 1\nb: {", 2, "not YAML"),
        ("rules: []", 1, "no scrape_configs"),
        ("just words", 1, "neither"),
        ("scrape_configs: 7", 1, "a list of jobs"),
    ],
)
def test_what_is_refused_has_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(ScrapeConfigError) as caught:
        parse_scrape_config(text)
    assert (caught.value.line, f"line {line}" in caught.value.seen) == (line, True)
    assert said in caught.value.seen


@pytest.mark.parametrize(
    ("text", "seconds"), [("1m30s", 90), ("0", 0), ("500ms", 0.5), ("1d", 86400), ("2w", 1209600)]
)
def test_a_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "s", "1s1m", "-5s", "1.5s", "1" * 40 + "s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="not a valid duration"):
        parse_duration(text)
