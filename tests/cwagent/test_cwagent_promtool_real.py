"""Against Prometheus's own judge, promtool: what it takes and refuses, we take and refuse."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpuworkshop import settings
from gpuworkshop.cwagent.inputs import read_text
from gpuworkshop.cwagent.scrape_config import parse_scrape_config
from gpuworkshop.deploy import manifests
from gpuworkshop.errors import ScrapeConfigError
from gpuworkshop.processes.tools import find_or_fetch

pytestmark = pytest.mark.real
REGEXES = [
    *("a(b", "*a", "a**", "a{1001}", "a{2,1}", "(?i)x", "(?=x)", "(?P<n>a)", "(?<n>a)", r"\pN", r"\p{Foo}"),
    *(
        "[[:alpha:]]",
        "[[:foo:]]",
        "[z-a]",
        "\\",
        r"\Q.*",
        "a)(b",
        r"\1",
        r"\C",
        "(x{1000}){2}",
        "",
        r"\z",
        r"\Z",
    ),
    *(
        "[a",
        "a]",
        "{",
        "a{,3}",
        "(?U)a",
        r"\x{10FFFF}",
        r"\x{110000}",
        "é",
        "a|*",
        "(|a)*",
        "(?:",
        "[]a]",
        "[^]",
    ),
]
RULES: list[Any] = [
    {"action": "replace"},
    {"action": "labeldrop", "regex": "a", "separator": ","},
    {"action": "labeldrop", "regex": "a", "separator": ";"},
    {"action": "labeldrop", "regex": "a", "source_labels": []},
    {"action": "hashmod", "modulus": 4},
    {"action": "keepequal", "source_labels": ["a"], "target_label": "b", "regex": "(.*)"},
    {"action": "dropequal", "source_labels": ["a"], "target_label": "b", "modulus": 0},
    {"action": "drop", "regex": ""},
    {"action": ""},
    {"action": None, "target_label": "x"},
    {"action": "Keep", "regex": "a"},
    {"target_label": "x", "replacement": None},
    {"target_label": "x", "regex": None},
    {"action": "uppercase", "target_label": "x", "replacement": "$1"},
    {"target_label": "x", "source_labels": "a"},
    {"modulus": "x", "target_label": "t"},
    None,
    {},
]
JOBS = [
    {"scrape_interval": "5s", "scrape_timeout": "6s"},
    {"scrape_interval": "1s500ms"},
    {"scrape_interval": "1h30"},
    {"honor_labels": 1},
    {"params": {"a": "b"}},
    {"foo": 1},
    {"sample_limit": -1},
    {"static_configs": [{"targets": ["http://x/"]}]},
    {"kubernetes_sd_configs": [{"role": "Pod"}]},
    {"kubernetes_sd_configs": [{}]},
    {"relabel_configs": {}},
    {"relabel_configs": None},
]


@pytest.fixture(scope="module")
def promtool() -> Path:
    return find_or_fetch("promtool", settings.load())


def judged(promtool: Path, folder: Path, text: str) -> str:
    """What promtool says against it, "" if it takes it."""
    path = folder / "prometheus.yml"
    path.write_text(text)
    command = [str(promtool), "check", "config", "--syntax-only", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def ours(text: str) -> str:
    try:
        parse_scrape_config(text)
    except ScrapeConfigError as error:
        return error.seen
    return ""


def configuration(job: dict[str, Any]) -> str:
    return yaml.safe_dump({"scrape_configs": [{"job_name": "a"} | job]}, allow_unicode=True)


@pytest.mark.parametrize("regex", REGEXES)
def test_an_expression(promtool: Path, tmp_path: Path, regex: str) -> None:
    text = configuration({"relabel_configs": [{"action": "keep", "regex": regex, "source_labels": ["a"]}]})
    theirs, said = judged(promtool, tmp_path, text), ours(text)
    assert bool(theirs) == bool(said), theirs or said
    if said:  # the same words; what is quoted differs, as this release wraps expressions otherwise
        assert said.rpartition("error parsing regexp: ")[2].split(":")[0] in theirs


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule(promtool: Path, tmp_path: Path, rule: Any) -> None:
    text = configuration({"relabel_configs": [rule]})
    theirs, said = judged(promtool, tmp_path, text), ours(text)
    assert bool(theirs) == bool(said), theirs or said


@pytest.mark.parametrize("job", JOBS, ids=str)
def test_a_job(promtool: Path, tmp_path: Path, job: dict[str, Any]) -> None:
    text = configuration(job)
    theirs, said = judged(promtool, tmp_path, text), ours(text)
    assert bool(theirs) == bool(said), theirs or said


def test_our_own_configuration(promtool: Path, tmp_path: Path) -> None:
    text = read_text(str(manifests.path("cloudwatch-agent")), ".yaml")
    assert judged(promtool, tmp_path, text) == ""
