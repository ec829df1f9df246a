"""Sets of fields, in the form in which managedFields holds them: FieldsV1.

A set is a tree of JSON objects. `f:name` is a field, `k:{"name":"web"}` an item of a list by its keys,
`v:"x"` an item of a set by its value. A node without content is a member of the set; one with content is a
member only if it has a `.` too. The trees are computed with as they are, and never changed in place, so that
they can be shared between the versions of an object: most writes touch a few leaves of large sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

Fields = dict[str, Any]

MEMBER = "."
_ORDER = {"f": 0, "k": 1, "v": 2, "i": 3}


def union(one: Fields, other: Fields) -> Fields:
    """The fields in either."""
    united = dict(one)
    for element, theirs in other.items():
        ours = united.get(element)
        if ours is None:
            united[element] = theirs
        elif ours != theirs:
            united[element] = _closed(union(_opened(ours), _opened(theirs)))
    return united


def difference(one: Fields, other: Fields) -> Fields:
    """The fields in `one` that are not in `other`; `one` itself where they share none."""
    left = one
    for element, theirs in other.items():
        ours = one.get(element)
        if ours is None:
            continue
        inner = _opened(ours)
        rest = {} if element == MEMBER else difference(inner, _opened(theirs))
        if rest is inner:
            continue
        if left is one:
            left = dict(one)
        if rest:
            left[element] = _closed(rest)
        else:
            del left[element]
    return left


def intersection(one: Fields, other: Fields) -> Fields:
    """The fields in both."""
    shared: Fields = {}
    for element, theirs in other.items():
        ours = one.get(element)
        if ours is None:
            continue
        if element == MEMBER:
            shared[element] = {}
        elif both := intersection(_opened(ours), _opened(theirs)):
            shared[element] = _closed(both)
    return shared


def is_member(node: Fields) -> bool:
    """Whether the node itself, rather than only something in it, is in the set."""
    return not node or MEMBER in node


def members(fields: Fields, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths in the set, in the order of conflicts: a level's own, then those further in."""
    elements = sorted(fields.keys() - {MEMBER}, key=lambda element: (_ORDER[element[0]], element))
    for element in elements:
        if is_member(fields[element]):
            yield (*above, element)
    for element in elements:
        yield from members(fields[element], (*above, element))


def text_of(path: Sequence[str]) -> str:
    """A path as messages have it: `.spec.containers[name="web"].image`."""
    return "".join(_element_text(element) for element in path)


def field(name: str) -> str:
    """The element of a field of an object."""
    return f"f:{name}"


def value_item(value: Any) -> str:
    """The element of an item of a set."""
    return f"v:{_json(value)}"


def keyed_item(keys: dict[str, Any]) -> str:
    """The element of an item that its keys tell from the others."""
    return f"k:{_json(keys)}"


def place(at: int) -> str:
    """The element of an item that only its place tells from the others."""
    return f"i:{at}"


def is_valid(fields: object) -> bool:
    """Whether that, which a client sent, is a FieldsV1."""
    if not isinstance(fields, dict):
        return False
    return all(
        inner == {} if element == MEMBER else _is_element(element) and is_valid(inner)
        for element, inner in fields.items()
    )


def _opened(node: Fields) -> Fields:
    return node or {MEMBER: {}}


def _closed(node: Fields) -> Fields:
    return {} if len(node) == 1 and MEMBER in node else node


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _is_element(element: str) -> bool:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return bool(rest)
    try:
        value = msgspec.json.decode(rest)
    except msgspec.DecodeError:
        return False
    return kind == "v" or (kind == "k" and isinstance(value, dict)) or (kind == "i" and type(value) is int)


def _element_text(element: str) -> str:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "k":
        keys = msgspec.json.decode(rest, type=dict[str, Any])
        return f"[{','.join(f'{key}={_json(value)}' for key, value in keys.items())}]"
    return f"[={rest}]" if kind == "v" else f"[{rest}]"
