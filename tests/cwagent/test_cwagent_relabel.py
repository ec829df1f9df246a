"""Relabelling: the open cases, and what they leave out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cwagent_cases import DATA

from gpuworkshop.cwagent.relabelling import compile_rules, relabel, run
from gpuworkshop.errors import RelabelError

CASES = json.loads((DATA / "cwagent-relabel.json").read_text())
Rule = dict[str, Any]


@pytest.mark.parametrize("case", CASES["valid"], ids=lambda case: case["name"])
def test_an_open_case(case: dict[str, Any]) -> None:
    assert relabel(case["labels"], case["relabel_configs"]) == case["output"]


@pytest.mark.parametrize("case", CASES["invalid"], ids=lambda case: case["why"])
def test_what_prometheus_refuses(case: dict[str, Any]) -> None:
    with pytest.raises(RelabelError):
        relabel({}, [case["relabel_config"]])


@pytest.mark.parametrize(
    ("rule", "labels", "after"),
    [
        ({"action": "keep", "source_labels": ["a"], "regex": r"\\C"}, {"a": "\\C"}, {"a": "\\C"}),
        ({"action": "drop", "source_labels": ["a"], "regex": "x"}, {"a": "x"}, None),
        (
            {"action": "keepequal", "source_labels": ["a"], "target_label": "b"},
            {"a": "1", "b": "1"},
            {"a": "1", "b": "1"},
        ),
        ({"action": "dropequal", "source_labels": ["a"], "target_label": "b"}, {"a": "1", "b": "1"}, None),
        ({"action": "labelkeep", "regex": "a|b"}, {"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "2"}),
        ({"action": "labelmap", "regex": "m_(.+)"}, {"m_x": "1"}, {"m_x": "1", "x": "1"}),
        (
            {"action": "labelmap", "regex": "m_(.+)", "replacement": "k_$1"},
            {"m_x": "1"},
            {"m_x": "1", "k_x": "1"},
        ),
        (
            {"source_labels": ["a", "b"], "separator": "/", "target_label": "t"},
            {"a": "1", "b": "2"},
            {"a": "1", "b": "2", "t": "1/2"},
        ),
        (
            {"source_labels": ["a"], "regex": "(?P<who>.+)-.*", "target_label": "t", "replacement": "$who"},
            {"a": "x-y"},
            {"a": "x-y", "t": "x"},
        ),
        (
            {"source_labels": ["a"], "regex": "(.*)", "target_label": "t", "replacement": "$1_gpu"},
            {"a": "v", "t": "old"},
            {"a": "v"},
        ),
        (
            {"source_labels": ["a"], "regex": "(.*)", "target_label": "t", "replacement": "$$1"},
            {"a": "v"},
            {"a": "v", "t": "$1"},
        ),
        (
            {"action": "LOWERCASE", "source_labels": ["a"], "target_label": "t"},
            {"a": "ÅB"},
            {"a": "ÅB", "t": "åb"},
        ),
        ({"source_labels": ["gone"], "target_label": "a"}, {"a": "1"}, {}),
        (
            {"source_labels": ["a"], "regex": "(?i)X", "target_label": "t", "replacement": "hit"},
            {"a": "x"},
            {"a": "x", "t": "hit"},
        ),
    ],
)
def test_an_action(rule: Rule, labels: dict[str, str], after: dict[str, str] | None) -> None:
    assert relabel(labels, [rule]) == after


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"action": "fly"}, "unknown relabel action"),
        ({"action": "hashmod", "target_label": "t"}, "requires non-zero modulus"),
        ({"action": "hashmod", "target_label": "t", "modulus": "9" * 5000}, "into uint64"),
        ({"action": "hashmod", "target_label": "t", "modulus": 2**64}, "into uint64"),
        ({"action": "labeldrop", "regex": "a", "source_labels": ["a"]}, "requires only 'regex'"),
        ({"action": "labelmap", "regex": "a", "replacement": ""}, "invalid 'replacement'"),
        ({"action": "keep", "regex": "a(?=b)"}, "invalid or unsupported Perl syntax"),
        ({"action": "keep", "regex": "(a"}, "missing closing )"),
        ({"action": "keep", "regex": "\\C"}, "invalid escape sequence: `\\C`"),
        ({"action": "keep", "regex": "a{1001}"}, "invalid repeat count"),
        ({"action": "keep", "regexp": "a"}, "field regexp not found"),
        ({"target_label": "t", "source_labels": "a"}, "cannot unmarshal"),
        ({"target_label": "t", "source_labels": [""]}, "is not a valid label name"),
    ],
)
def test_a_refusal_is_in_prometheus_own_words(rule: Rule, said: str) -> None:
    with pytest.raises(RelabelError) as caught:
        relabel({"a": "x"}, [rule])
    assert said in caught.value.seen
    assert caught.value.todo


def test_a_refusal_in_a_list_says_which_rule() -> None:
    with pytest.raises(RelabelError) as caught:
        compile_rules([{"action": "keep"}, {"action": "replace"}], "relabel_configs")
    assert caught.value.seen.startswith("relabel_configs[1]: ")
    assert caught.value.path == ("relabel_configs", 1)


def test_scalars_are_taken_as_text() -> None:
    assert relabel({"a": "true"}, [{"action": "keep", "source_labels": ["a"], "regex": True}]) == {
        "a": "true"
    }


def test_rules_behind_the_one_that_drops_can_be_followed() -> None:
    rules = compile_rules(
        [{"action": "keep", "source_labels": ["a"], "regex": "no"}, {"target_label": "b", "replacement": "1"}]
    )
    assert run({"a": "x"}, rules).labels == {"a": "x"}
    outcome = run({"a": "x"}, rules, go_on=True)
    assert (outcome.dropped_at, outcome.labels) == (0, {"a": "x", "b": "1"})
