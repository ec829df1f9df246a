"""Label selectors, in a query's text and in objects."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuworkshop.lab.api.object_selectors import requirements_of, selects
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.requirements import Requirement
from gpuworkshop.lab.api.selectors import label_selector, requirements

WEB = {"app": "web", "tier": "front", "example.com/rank": "7"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("  ", True),
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier=front", True),
        ("app=db", False),
        ("app!=db", True),
        ("app!=web", False),
        ("missing!=web", True),
        ("app in (web,db)", True),
        ("app in ( db )", False),
        ("app notin (db)", True),
        ("app notin (web)", False),
        ("missing notin (web)", True),
        ("app", True),
        ("missing", False),
        ("!missing", True),
        ("! app", False),
        ("example.com/rank>6", True),
        ("example.com/rank>7", False),
        ("example.com/rank<10", True),
        ("app>6", False),
        ("missing<6", False),
        ("app=", False),
        ("missing=", False),
        ("app in (,)", False),
        ("app=web,tier", True),
        ("app=web,!tier", False),
        ("in=x", False),
        ("app notin (in,notin)", True),
        ("app=web,", None),
    ],
)
def test_what_a_text_selects(text: str, selected: bool | None) -> None:
    if selected is None:
        with pytest.raises(ApiError):
            label_selector(text)
    else:
        assert label_selector(text)(WEB) is selected


def test_an_empty_value_is_a_value() -> None:
    for text in ("app=", "app in (a,)", "app in (,a)", "app in (a,,b)"):
        assert label_selector(text)({"app": ""})
        assert not label_selector(text)({})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("=b", "found '=', expected: !, identifier, or 'end of string'"),
        ("a=b,,c=d", "found ',', expected: identifier after ','"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
        ("a in (=)", "unable to parse requirement: found '=', expected: ',', ')' or identifier"),
        ("a==(b)", "unable to parse requirement: found '(', expected: identifier"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
        (
            "a in ()",
            "unable to parse requirement: values: Invalid value: []: for 'in', 'notin' operators, values set "
            "can't be empty",
        ),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the "
            "value must be an integer",
        ),
    ],
)
def test_the_words_for_what_cannot_be_read(text: str, words: str) -> None:
    with pytest.raises(ApiError) as caught:
        label_selector(text)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    assert caught.value.message == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a/b/c=d", 'key: Invalid value: "a/b/c": a qualified name must consist of'),
        ("/b=d", 'key: Invalid value: "/b": prefix part must be non-empty'),
        ("a/=d", 'key: Invalid value: "a/": name part must be non-empty'),
        ("UP.com/b=d", 'key: Invalid value: "UP.com/b": prefix part a lowercase RFC 1123 subdomain must'),
        (f"{'a' * 254}/b", "prefix part must be no more than 253 bytes"),
        (f"{'k' * 64}=d", "name part must be no more than 63 bytes"),
        ("-a=d", 'key: Invalid value: "-a": name part must consist of'),
        ("a=-d", 'values[0][a]: Invalid value: "-d": a valid label must be an empty string or consist of'),
        (f"a={'v' * 64}", "must be no more than 63 bytes"),
        ("a in (x,-y)", 'values[0][a]: Invalid value: "-y"'),
    ],
)
def test_keys_and_values_that_no_label_has(text: str, words: str) -> None:
    with pytest.raises(ApiError, match="unable to parse requirement: ") as caught:
        label_selector(text)
    assert words in caught.value.message


KEYS = st.from_regex(
    r"[a-z]{1,5}(\.[a-z]{1,3})?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?", fullmatch=True
)
SHORT_KEYS = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?", fullmatch=True)
VALUES = st.one_of(st.just(""), SHORT_KEYS)
ALL_KEYS = st.one_of(KEYS, SHORT_KEYS)
REQUIREMENTS = st.one_of(
    st.builds(Requirement, ALL_KEYS, st.sampled_from(["exists", "!"])),
    st.builds(
        Requirement,
        ALL_KEYS,
        st.sampled_from(["=", "==", "!="]),
        st.frozensets(VALUES, min_size=1, max_size=1),
    ),
    st.builds(
        Requirement, ALL_KEYS, st.sampled_from(["in", "notin"]), st.frozensets(VALUES, min_size=1, max_size=3)
    ),
    st.builds(
        Requirement,
        ALL_KEYS,
        st.sampled_from(["gt", "lt"]),
        st.integers(0, 99).map(lambda number: frozenset([str(number)])),
    ),
)


@given(st.lists(REQUIREMENTS, max_size=4))
def test_what_is_printed_is_read_back(wanted: list[Requirement]) -> None:
    assert requirements(",".join(map(str, wanted))) == wanted


@given(st.text(alphabet="ab=!<>(), in/.-", max_size=14))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ApiError):
        found = requirements(text)
        assert requirements(",".join(map(str, found))) == found


@given(st.lists(REQUIREMENTS, max_size=3), st.dictionaries(SHORT_KEYS, VALUES, max_size=3))
def test_all_requirements_must_be_met(wanted: list[Requirement], labels: dict[str, str]) -> None:
    text = ",".join(map(str, wanted))
    assert label_selector(text)(labels) is all(label_selector(str(one))(labels) for one in wanted)


def test_objects_select_as_their_text_does() -> None:
    selector = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["front", "back"]},
            {"key": "zone", "operator": "NotIn", "values": ["a"]},
            {"key": "tier", "operator": "Exists"},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    }
    assert ",".join(map(str, requirements_of(selector))) == (
        "app=web,tier in (back,front),zone notin (a),tier,!old"
    )
    assert selects(selector, WEB)
    assert not selects(selector, {**WEB, "old": ""})


def test_an_empty_object_selects_all_and_none_selects_nothing() -> None:
    assert selects({}, {})
    assert not selects(None, {})


def test_an_operator_that_objects_lack() -> None:
    with pytest.raises(ApiError, match='"Like" is not a valid label selector operator'):
        selects({"matchExpressions": [{"key": "a", "operator": "Like"}]}, {})
