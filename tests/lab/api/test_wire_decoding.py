"""JSON and YAML bodies: what they hold, what is there twice, and what is refused."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.wire.decoding import DEEPEST, decode_json, decode_yaml

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_json_is_what_it_was(value: Any) -> None:
    assert decode_json(json.dumps(value).encode()) == (value, [])


@given(VALUES)
def test_json_is_yaml_too(value: Any) -> None:
    body = json.dumps({"a": value}).encode()
    assert decode_yaml(body) == decode_json(body)


def test_yaml_as_kubectl_writes_it() -> None:
    text = """\
    # a comment
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: x, creationTimestamp: null, labels: {version: "1.10", on: "yes"}}
    data:
      since: 2026-12-01
      script: |
        echo hello
        echo there
    binaryData: {a: !!str 12}
    """
    assert decode_yaml(text.encode())[0] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "creationTimestamp": None, "labels": {"version": "1.10", "on": "yes"}},
        "data": {"since": "2026-12-01", "script": "echo hello\necho there\n"},
        "binaryData": {"a": "12"},
    }


def test_keys_of_yaml_are_texts() -> None:
    assert decode_yaml(b"{1: a, true: b, 1.5: c, null: d, on: e}") == (
        {"1": "a", "true": "b", "1.5": "c", "null": "d", "on": "e"},
        [],
    )


def test_anchors_and_merge_keys() -> None:
    text = b"base: &base {a: 1, b: 2}\nmore: {<<: *base, b: 3}\nsame: *base\n"
    assert decode_yaml(text)[0]["more"] == {"a": 1, "b": 3}
    assert decode_yaml(text)[1] == []


DUPLICATES = [
    ("a: 1\na: 2\n", {"a": 2}, ["a"]),
    ("spec: {replicas: 1, replicas: 2, replicas: 3}", {"spec": {"replicas": 3}}, ["spec.replicas"]),
    ("l: [{x: 1}, {x: 1, x: 2}]", {"l": [{"x": 1}, {"x": 2}]}, ["l[1].x"]),
    ("l: [[{x: 1, x: 2}]]", {"l": [[{"x": 2}]]}, ["l[0][0].x"]),
    ("m: {b: {z: 1, z: 1}, a: {}, b: {y: 1}}", {"m": {"b": {"y": 1}, "a": {}}}, ["m.b"]),
    ("x: {d: 1, c: 1, c: 2, d: 2}", {"x": {"d": 2, "c": 2}}, ["x.c", "x.d"]),
]


@pytest.mark.parametrize(("text", "value", "paths"), DUPLICATES)
def test_duplicate_fields_of_yaml(text: str, value: Any, paths: list[str]) -> None:
    found, doubts = decode_yaml(text.encode())
    assert found == value
    assert {f'duplicate field "{path}"' for path in paths} <= set(doubts)


@pytest.mark.parametrize(("text", "value", "paths"), DUPLICATES)
def test_duplicate_fields_of_json(text: str, value: Any, paths: list[str]) -> None:
    found, doubts = decode_json(as_json(yaml.compose(text)).encode())
    assert found == value
    assert doubts == [f'duplicate field "{path}"' for path in paths]


def as_json(node: yaml.Node | None) -> str:
    """The JSON of a YAML document, with what is there twice."""
    if isinstance(node, yaml.MappingNode):
        return "{" + ",".join(f"{json.dumps(key.value)}:{as_json(value)}" for key, value in node.value) + "}"
    if isinstance(node, yaml.SequenceNode):
        return "[" + ",".join(map(as_json, node.value)) + "]"
    assert isinstance(node, yaml.ScalarNode)
    return str(node.value)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"a":1',
        b'{"a":1,}',
        b"{'a':1}",
        b'{"a":1} x',
        b"nul",
        b"NaN",
        b"1e999",
        b'"\xff"',
        b'"\\ud800"',
        b'{"a":"\x01"}',
        b"[" * 100_000,
    ],
)
def test_malformed_json(body: bytes) -> None:
    with pytest.raises(ApiError, match="json parse error") as caught:
        decode_json(body)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"a: b: c", "yaml: line 1: mapping values are not allowed"),
        (b"a:\n\tb: 1", "yaml: line 2: found character that cannot start any token"),
        (b"a: [1, 2", "yaml: line 2: did not find expected"),
        (b"a: 1\n---\nb: 2\n", "expected a single document"),
        (b"a: *nobody", "found undefined alias"),
        (b"a: \xff", "yaml: "),
        (b"a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        (b"? [a]\n: b", "found unhashable key"),
        (b"x: !!set {a, b}", "unsupported value"),
        (b"x: !!binary aGk=", "unsupported value"),
        (b"x: .nan", "unsupported value: nan"),
        (b"x: -.inf", "unsupported value: -inf"),
        (b"[" * 5_000, "nesting depth"),
    ],
)
def test_malformed_yaml(body: bytes, says: str) -> None:
    with pytest.raises(ApiError, match=says) as caught:
        decode_yaml(body)
    assert caught.value.code == 400
    assert "\n" not in caught.value.message


def test_a_few_aliases_for_billions_of_values() -> None:
    levels = [b"a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12)]
    with pytest.raises(ApiError, match="excessive aliasing"):
        decode_yaml(b"\n".join(levels))


@pytest.mark.parametrize("body", [b"&a [*a]", b"a: &a {b: [*a]}"])
def test_a_value_that_holds_itself(body: bytes) -> None:
    with pytest.raises(ApiError, match="excessive aliasing"):
        decode_yaml(body)


@pytest.mark.parametrize("decode", [decode_json, decode_yaml])
def test_depth(decode: Any) -> None:
    def nested(depth: int) -> bytes:
        return b'{"a":' * depth + b"1" + b"}" * depth

    assert decode(nested(DEEPEST - 1))[1] == []
    with pytest.raises(ApiError, match="nested more than"):
        decode(nested(DEEPEST))


def test_empty_yaml_is_null() -> None:
    assert decode_yaml(b"") == (None, [])
    assert decode_yaml(b"# nothing\n") == (None, [])


@pytest.mark.parametrize("decode", [decode_json, decode_yaml])
@given(body=st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(decode: Any, body: bytes) -> None:
    with contextlib.suppress(ApiError):
        value, _ = decode(body)
        json.dumps(value, allow_nan=False)
