"""Text to values: JSON and YAML as the API server takes them, malformed ones refused, duplicate fields told.

msgspec reads JSON, since it is as strict as Go's decoder; the standard library's reader, which shows every
pair, then finds duplicates. YAML goes through PyYAML, on C where that is there, and is weighed before it is
built: a few aliases can stand for billions of values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from gpuworkshop.lab.api import problems

DEEPEST = 100
HEAVIEST = 300_000

Pairs = list[tuple[str, Any]]


def decode_json(body: bytes) -> tuple[Any, list[str]]:
    """The value, and `duplicate field "a.b"` for each that is there twice. Raises ApiError 400."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        message = f"couldn't get version/kind; json parse error: {error}"
        raise problems.bad_request(message) from error
    _check(value)
    return value, _told(_repeated_in_json(body))


def decode_yaml(body: bytes) -> tuple[Any, list[str]]:
    """The same for YAML, which JSON is too."""
    if body.lstrip()[:1] in (b"{", b"["):
        try:
            return decode_json(body)
        except problems.ApiError:
            pass  # a flow mapping of YAML's begins like JSON
    try:
        value, repeated = _built(body)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise problems.bad_request(f"error converting YAML to JSON: yaml: {_said(error)}") from error
    _check(value)
    return value, _told(repeated)


def _said(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        # "while scanning a simple key" says nothing to a reader of the message, other contexts do.
        context = "" if (error.context or "while").startswith("while") else f"{error.context} "
        return f"line {error.problem_mark.line + 1}: {context}{error.problem}"
    return " ".join(str(error).split())


def _told(repeated: list[str]) -> list[str]:
    return [f'duplicate field "{path}"' for path in dict.fromkeys(repeated)]


def _repeated_in_json(body: bytes) -> list[str]:
    # Kept, so that no other mapping gets the identity of one that a later duplicate replaced.
    kept: list[tuple[dict[str, Any], list[str]]] = []

    def paired(pairs: Pairs) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            names = [name for name, _ in pairs]
            kept.append((made, sorted({name for name in names if names.count(name) > 1})))
        return made

    value = json.loads(body, object_pairs_hook=paired)
    if not kept:
        return []
    names = {id(made): found for made, found in kept}
    return [path + name for path, holder in _mappings(value, "") for name in names.get(id(holder), ())]


def _mappings(value: Any, at: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every mapping in a value, with the path that its fields begin with."""
    if isinstance(value, dict):
        yield at, value
        for name, inner in value.items():
            yield from _mappings(inner, f"{at}{name}." if isinstance(inner, dict) else f"{at}{name}")
    elif isinstance(value, list):
        for n, item in enumerate(value):
            yield from _mappings(item, f"{at}[{n}]." if isinstance(item, dict) else f"{at}[{n}]")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Leaves times as text, and makes a text of every key, as JSON has them."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping of a node."""
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                key.tag = "tag:yaml.org,2002:str"
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _built(body: bytes) -> tuple[Any, list[str]]:
    loader = _Loader(body)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, []
        if _weight(node, {}) > HEAVIEST:
            raise ValueError("document contains excessive aliasing")
        repeated = list(_repeated_in_yaml(node, ""))
        return loader.construct_document(node), repeated
    finally:
        loader.dispose()


def _weight(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for; a node that holds itself is endless."""
    if id(node) not in known:
        known[id(node)] = HEAVIEST
        known[id(node)] = 1 + sum(_weight(inner, known) for _, inner in _children(node))
    return known[id(node)]


def _repeated_in_yaml(node: yaml.Node, at: str) -> Iterator[str]:
    seen: set[str] = set()
    for name, inner in _children(node):
        path = f"{at}{name}" if name.startswith("[") or not at else f"{at}.{name}"
        if path in seen:
            yield path
        seen.add(path)
        yield from _repeated_in_yaml(inner, path)


def _children(node: yaml.Node) -> Iterator[tuple[str, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        for key, inner in node.value:
            yield str(key.value), inner
    elif isinstance(node, yaml.SequenceNode):
        for n, inner in enumerate(node.value):
            yield f"[{n}]", inner


def _endless(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _check(value: Any) -> None:
    """Refuse what JSON has not, and what is nested deeper than any object, before anything recurses."""
    level = [value]
    for _ in range(DEEPEST):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
            elif not isinstance(item, str | int | float | None) or _endless(item):
                raise problems.bad_request(f"json: unsupported value: {item!r}")
        if not inner:
            return
        level = inner
    raise problems.bad_request(f"the body is nested more than {DEEPEST} levels deep")
