"""Which fields an object has, and which differ between two versions of it.

Comparing walks only into what differs, since it happens at every write of every object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.patching.fieldsv1 import MEMBER, Fields, difference, field
from gpuworkshop.lab.api.patching.shapes import Shape


def fields_in(value: Any, shape: Shape) -> Fields:
    """The fields that someone who applies `value` owns.

    A mapping of named fields is not a member itself, unless it is empty; an item of a list or a map is.
    """
    found: Fields = {}
    for element, inner, inner_shape, named in _parts(value, shape):
        inside = fields_in(inner, inner_shape)
        if named and not inside and inner != {} and _is_divided(inner, inner_shape):
            continue  # nothing in it can be owned, as in an empty list
        found[element] = {MEMBER: {}, **inside} if inside and not named else inside
    return found


def all_fields_in(value: Any, shape: Shape) -> Fields:
    """The fields of a value that is new: mappings and lists are members as well as their parts."""
    inside = {
        element: all_fields_in(inner, inner_shape) for element, inner, inner_shape, _ in _parts(value, shape)
    }
    return {MEMBER: {}, **inside} if inside else {}


def compare(old: Object, new: Object, shape: Shape) -> tuple[Fields, Fields]:
    """The fields that `new` changed or added, and those that it has no longer."""
    changed: Fields = {}
    removed: Fields = {}
    for name, value in new.items():
        before = old.get(name)
        if value is not before and value != before:
            _compare_value(field(name), before, value, shape.child(name), (changed, removed))
    for name in old.keys() - new.keys():
        if old[name] is not None:
            removed[field(name)] = all_fields_in(old[name], shape.child(name))
    return changed, removed


def _compare_value(element: str, before: Any, value: Any, shape: Shape, into: tuple[Fields, Fields]) -> None:
    changed, removed = into
    if before is None and shape.always and value:
        before = type(value)()
    if value is None:
        removed[element] = all_fields_in(before, shape)
    elif before is None:
        changed[element] = all_fields_in(value, shape)
    elif (inside := _inside(before, value, shape)) is None:
        changed[element] = all_fields_in(value, shape)
        removed.update(difference({element: all_fields_in(before, shape)}, changed))
    else:
        for found, target in zip(inside, into, strict=True):
            if found:
                target[element] = found


def _inside(before: Any, value: Any, shape: Shape) -> tuple[Fields, Fields] | None:
    """What differs within; None if the value counts as one."""
    if shape.atomic or type(before) is not type(value):
        return None
    if isinstance(value, dict):
        return compare(before, value, shape)
    if isinstance(value, list) and shape.merges_items:
        return _compare_items(_items(before, shape), _items(value, shape), shape.items)
    return None


def _compare_items(old: dict[str, Any], new: dict[str, Any], shape: Shape) -> tuple[Fields, Fields]:
    into: tuple[Fields, Fields] = ({}, {})
    for element, value in new.items():
        before = old.get(element)
        if value != before:
            _compare_value(element, before, value, shape, into)
    for element in old.keys() - new.keys():
        into[1][element] = all_fields_in(old[element], shape)
    return into


def _is_divided(value: Any, shape: Shape) -> bool:
    if shape.atomic:
        return False
    return isinstance(value, dict) or (isinstance(value, list) and shape.merges_items)


def _parts(value: Any, shape: Shape) -> Iterator[tuple[str, Any, Shape, bool]]:
    """The elements of a value, what they hold and how that merges, and whether the type names the element."""
    if not _is_divided(value, shape):
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            yield field(name), inner, shape.child(name), name in shape.fields
        return
    for element, inner in _items(value, shape).items():
        yield element, inner, shape.items, False


def _items(value: Sequence[Any], shape: Shape) -> dict[str, Any]:
    """The items by their elements; those that share one are one value."""
    return {
        element: found[0] if len(found) == 1 else found for element, found in shape.elements(value).items()
    }
