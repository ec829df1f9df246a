"""The agent's JSON: what it says, what the agent forgives in silence, and broken JSON with its line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cwagent_cases import BLOG_AGENT, SETS, agent, agent_text, declaration

from gpuworkshop.cwagent.agent_config import parse_agent_config
from gpuworkshop.errors import AgentConfigError


def test_the_published_configuration() -> None:
    config = parse_agent_config(BLOG_AGENT)
    assert (config.namespace, config.units, config.flush_s, config.faults) == (
        "ContainerInsights/Prometheus",
        {},
        5,
        (),
    )
    (only,) = config.in_use
    assert only.source_labels == ("Service",)
    assert only.dimensions == (("ClusterName", "Namespace", "Service", "job", "pod"),)
    assert only.selects("DCGM_FI_DEV_GPU_UTIL")
    assert not only.selects("DCGM_FI_DEV_GPU_UTIL_RATIO")


def test_names_in_a_set_are_sorted_and_sets_differ() -> None:
    config = agent(declaration(dimensions=[["b", "a", "b"], ["a", "b"], []]))
    assert config.declarations[0].dimensions == (("a", "b"), ())


def test_cluster_and_log_group() -> None:
    assert agent().log_group_of({}) == "/aws/containerinsights/lab/prometheus"
    assert agent(log_group_name="mine").log_group_of({}) == "mine"
    assert agent(cluster_name="").cluster == "from-the-tags-of-the-instance"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"source_labels": []}, "declaration-skipped"),
        ({"metric_selectors": []}, "declaration-skipped"),
        ({"dimensions": []}, "dimensions-missing"),
        ({"dimensions": ["instance"]}, "dimensions-not-nested"),
        ({"dimensions": [[f"d{n}" for n in range(11)]]}, "too-many-dimensions"),
        ({"metric_selectors": ["*"]}, "selector-does-not-compile"),
        ({"label_matcher": 7}, "wrong-shape"),
        ({"label_matcher": "*"}, "matcher-does-not-compile"),
        ({"source_labels": "Service"}, "wrong-shape"),
        ({"source_labels": ["a", "b"], "label_separator": "/"}, "separator-ignored"),
    ],
)
def test_what_the_agent_forgives_is_noted(changes: dict[str, Any], code: str) -> None:
    faults = agent(declaration(**changes)).faults
    assert code in [fault.code for fault in faults]
    assert all(fault.line > 0 for fault in faults)


def test_a_fault_has_the_line_where_it_stands() -> None:
    text = agent_text(declaration(), declaration(label_matcher="*"))
    (fault,) = parse_agent_config(text).faults
    assert '"label_matcher": "*"' in text.splitlines()[fault.line - 1]


def test_a_lone_matcher_that_does_not_compile_lets_everything_out() -> None:
    assert agent(declaration(label_matcher="*")).every_label
    assert not agent(declaration(label_matcher="*"), declaration()).every_label
    assert not agent(declaration(label_matcher="*", source_labels=[])).every_label


@pytest.mark.parametrize(
    "text",
    [
        '{"logs": []}',
        '{"logs": {"metrics_collected": {"prometheus": 1}}}',
        "1" * 5000,
        "[]",
        "7",
        '{"logs": {"force_flush_interval": "5"}}',
        "{}",
    ],
)
def test_other_shapes_are_faults_and_no_errors(text: str) -> None:
    config = parse_agent_config(text)
    assert config.faults
    assert not config.in_use


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('{\n "a": [1,\n ]\n}', 3, "comma"),
        ('{\n "a": 1,\n}', 3, "line 3"),
        ('{\n // why\n "a": 1}', 2, "comment"),
        ("", 1, "line 1"),
        ("{\n 'a': 1}", 2, "line 2"),
        ("[" * 100_000, 1, "nested"),
        ('{"NaN": 1,\n "a": NaN}', 2, "NaN"),
    ],
)
def test_broken_json_has_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(AgentConfigError, match=said) as caught:
        parse_agent_config(text)
    assert caught.value.line == line


def test_half_a_character_is_replaced_as_go_does() -> None:
    text = agent_text(declaration(source_labels=["a"])).replace('"a"', '"\\ud800"')
    assert parse_agent_config(text).declarations[0].source_labels == ("\ufffd",)


def test_the_configuration_of_these_tests_is_right() -> None:
    assert agent().faults == ()
    assert json.loads(agent_text())["logs"]["metrics_collected"]["prometheus"]["cluster_name"] == "lab"
    assert set(agent().declarations[0].dimensions) == {tuple(sorted(names)) for names in SETS}
