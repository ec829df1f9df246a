"""Rules at random on labels at random: what Prometheus makes of a target, by promtool, we make of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuworkshop import settings as setup
from gpuworkshop.cwagent.scrape_config import parse_scrape_config
from gpuworkshop.cwagent.targets import follow_targets
from gpuworkshop.processes.tools import find_or_fetch

pytestmark = pytest.mark.real
NAMES = st.sampled_from(["a", "b", "pod", "m_x", "m_y", "x"])
VALUES = st.sampled_from(
    ["nvidia-dcgm-exporter", "a", "10.0.0.5:9400", "GPU", "l1;l2", "é", "İstanbul", "ßa", "ǅ"]
)
REGEXES = st.sampled_from(
    ["(.*)", "(.+)", "([^-]*)-(.*)", "a|b", "(?i)gpu", "", "(?P<n>.).*", "(.)(.)?.*", "^a$"]
)
TEMPLATES = st.sampled_from(
    ["$1", "${1}", "$2", "${2}x", "$n", "$1_x", "$$1", "", "$", "${", "$10", "${n}", "$0"]
)
# Each gives its own name to each label: which of two wins that get the same is left to chance in Prometheus.
LABEL_REGEXES = st.sampled_from(["m_(.*)", "(x|a)", "(.)", "__meta_(.+)", "(pod|job|__s.*)", "(p.*)"])
SOURCES = st.lists(NAMES, max_size=2)


def rule(action: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"action": st.just(action), **fields})


RULES = st.one_of(
    rule(
        "replace",
        source_labels=SOURCES,
        target_label=NAMES | st.just("t_${1}"),
        regex=REGEXES,
        replacement=TEMPLATES,
    ),
    rule("replace", source_labels=SOURCES, target_label=NAMES, separator=st.sampled_from([",", "", "--"])),
    rule("drop", source_labels=SOURCES, regex=REGEXES),
    rule("keep", source_labels=SOURCES, regex=st.sampled_from(["(.*)", ".+"])),
    rule("labelmap", regex=LABEL_REGEXES, replacement=st.sampled_from(["$1", "q_$1"])),
    rule("labeldrop", regex=st.sampled_from(["x|y", "m_.*", "(.)"])),
    rule("labelkeep", regex=st.just("__.*|job|instance|a|m_.*")),
    rule("hashmod", source_labels=SOURCES, target_label=NAMES, modulus=st.sampled_from([1, 4, 2**33])),
    *(
        rule(action, source_labels=SOURCES, target_label=NAMES)
        for action in ("lowercase", "uppercase", "keepequal")
    ),
)


@pytest.fixture(scope="module")
def promtool() -> Path:
    return find_or_fetch("promtool", setup.load())


def theirs(promtool: Path, path: Path) -> dict[str, str]:
    command = [str(promtool), "check", "service-discovery", "--timeout=50ms", str(path), "j"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    labels = json.loads(done.stdout)[0].get("labels") or {}
    return {name: value for name, value in labels.items() if not name.startswith("__")}


@settings(deadline=None, max_examples=40, derandomize=True)
@given(labels=st.dictionaries(NAMES, VALUES, max_size=5), rules=st.lists(RULES, min_size=1, max_size=4))
def test_a_target_ends_with_the_same_labels(
    promtool: Path,
    tmp_path_factory: pytest.TempPathFactory,
    labels: dict[str, str],
    rules: list[dict[str, Any]],
) -> None:
    static = [{"targets": ["10.0.0.5:9400"], "labels": labels | {"__meta_z": "zed"}}]
    job = {"job_name": "j", "relabel_configs": rules, "static_configs": static}
    path = tmp_path_factory.mktemp("rules") / "prometheus.yml"
    path.write_text(yaml.safe_dump({"scrape_configs": [job]}, allow_unicode=True))
    (target,) = follow_targets(parse_scrape_config(path.read_text()), [])
    assert (dict(target.labels) if target.kept else {}) == theirs(promtool, path)
