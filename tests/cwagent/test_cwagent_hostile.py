"""Hostile pages, YAML, JSON and expressions: findings with lines, and never a traceback."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from cwagent_cases import BLOG_AGENT, BLOG_JOB, JOB, PAGE, agent_text, declaration
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuworkshop.cwagent import report
from gpuworkshop.cwagent.explanation import Explanation, explain
from gpuworkshop.cwagent.relabelling import relabel
from gpuworkshop.cwagent.rules import ACTIONS, FIELDS
from gpuworkshop.errors import RelabelError

BOUNDED = settings(deadline=None, max_examples=60, derandomize=True)
SHORT_PAGE = "\n".join(PAGE.splitlines()[:9]) + "\n"
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
REGEXES = st.text("ab.*+?()[]{}|^$\\d:=!<P1,i-", max_size=14) | st.text(max_size=10)


def told(story: Explanation) -> None:
    """It can be shown in both ways, and what could not be read has its line."""
    json.dumps(story.as_json()).encode()
    "\n".join(report.lines(story)).encode()
    for finding in story.findings:
        assert finding.fix
        if finding.code.startswith("invalid-"):
            assert "line " in finding.message


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    place, drop = draw(st.integers(0, len(text))), draw(st.integers(0, 30))
    put = draw(st.text("{}[]:,\"'\n\t -#&*!|>%@`\\\x00\ud800é1", max_size=6) | st.text(max_size=4))
    return text[:place] + put + text[place + drop :]


@BOUNDED
@given(page=st.binary(max_size=100) | st.text(max_size=100) | damaged(SHORT_PAGE))
def test_pages(page: bytes | str) -> None:
    told(explain(page, JOB, agent_text()))


@BOUNDED
@given(text=st.text(max_size=60) | damaged(BLOG_JOB) | damaged(JOB))
def test_yaml(text: str) -> None:
    told(explain(SHORT_PAGE, text, BLOG_AGENT))


@BOUNDED
@given(text=st.text(max_size=60) | damaged(BLOG_AGENT) | damaged(agent_text()))
def test_json(text: str) -> None:
    told(explain(SHORT_PAGE, JOB, text))


@BOUNDED
@given(changes=st.dictionaries(st.sampled_from(sorted(declaration())), VALUES, max_size=4), matcher=REGEXES)
def test_declarations(changes: dict[str, Any], matcher: str) -> None:
    config = agent_text(declaration(label_matcher=matcher) | changes, declaration(metric_selectors=[matcher]))
    told(explain(SHORT_PAGE, JOB, config))


@BOUNDED
@given(
    rule=st.dictionaries(st.sampled_from([*FIELDS, "other"]), VALUES, max_size=5),
    action=st.sampled_from(ACTIONS),
    regex=REGEXES,
)
def test_rules(rule: dict[str, Any], action: str, regex: str) -> None:
    for each in (
        rule,
        rule | {"action": action, "regex": regex},
        {"source_labels": ["a"], "target_label": "b", "regex": regex},
    ):
        try:
            after = relabel({"a": "x", "b": "é\n"}, [each])
        except RelabelError as error:
            assert error.seen  # noqa: PT017 - either way is right
        else:
            assert after is None or all(after.values())


@BOUNDED
@given(
    job=st.dictionaries(
        st.sampled_from(
            [
                "job_name",
                "params",
                "honor_labels",
                "scrape_interval",
                "static_configs",
                "relabel_configs",
                "kubernetes_sd_configs",
                "metrics_path",
            ]
        ),
        VALUES,
        max_size=5,
    )
)
def test_jobs(job: dict[str, Any]) -> None:
    told(explain(SHORT_PAGE, yaml.safe_dump({"job_name": "a"} | job, allow_unicode=True), agent_text()))


@pytest.mark.parametrize(
    "regex",
    [
        "(a+)+$",
        "(a|a)*" * 50,
        "((a{0,100}){0,100}){0,100}",
        "a{1000}" * 20,
        "(" * 5000,
        "[" * 5000,
        "\\pN" * 3000,
    ],
)
def test_an_expression_meant_to_hang_does_not(regex: str) -> None:
    try:
        relabel({"a": "a" * 5000 + "!"}, [{"source_labels": ["a"], "regex": regex, "target_label": "b"}])
    except RelabelError as error:
        assert "error parsing regexp" in error.seen  # noqa: PT017 - either way is right


def test_many_faults_are_told_in_good_time() -> None:
    many = agent_text(*[declaration(label_matcher="*", dimensions=["a"] * 5)] * 300)
    assert len(explain(SHORT_PAGE, JOB, many).findings) > 300
