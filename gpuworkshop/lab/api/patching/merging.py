"""What server-side apply makes of an object: applied fields are merged in, those given up taken out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.patching.fieldsv1 import Fields, field, is_member, text_of
from gpuworkshop.lab.api.patching.merge import without_nulls
from gpuworkshop.lab.api.patching.ordering import interleaved
from gpuworkshop.lab.api.patching.shapes import Shape


def merged(live: Any, applied: Any, shape: Shape) -> Any:
    """`live` with what is applied; neither is changed. A field that is applied as null goes."""
    if shape.atomic:
        return without_nulls(applied)
    if isinstance(applied, dict):
        return _merged_fields(live if isinstance(live, dict) else {}, applied, shape)
    if isinstance(applied, list) and shape.merges_items:
        return _merged_items(live if isinstance(live, list) else [], applied, shape)
    return without_nulls(applied)


def pruned(value: Any, last: Fields, kept: Fields, shape: Shape) -> Any:
    """`value` without the fields in `last` that are not in `kept`, and without what that leaves empty.

    A field that the type names counts as in a set as soon as something in it is.
    """
    if shape.atomic:
        return value
    if isinstance(value, dict):
        return _pruned_fields(value, last, kept, shape)
    if isinstance(value, list) and shape.merges_items:
        return _pruned_items(value, last, kept, shape)
    return value


def fault_in(value: Any, shape: Shape, path: str = "") -> str:
    """What is wrong with the lists of an object that is to be applied, "" if nothing is."""
    if shape.atomic:
        return ""
    if isinstance(value, dict):
        inside = ((shape.child(name), inner, f"{path}.{name}") for name, inner in value.items())
    elif isinstance(value, list) and shape.merges_items:
        if fault := _fault_in_items(value, shape, path):
            return fault
        inside = ((shape.items, item, path + text_of([shape.element(item)])) for item in value)
    else:
        return ""
    return next((fault for child, inner, at in inside if (fault := fault_in(inner, child, at))), "")


def _merged_fields(live: Object, applied: Object, shape: Shape) -> Object:
    result = dict(live)
    for name, value in applied.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(live.get(name), value, shape.child(name))
    return result


def _merged_items(live: Sequence[Any], applied: Sequence[Any], shape: Shape) -> list[Any]:
    wanted = {shape.element(item): item for item in applied}
    there = shape.elements(live)
    result: list[Any] = []
    for element in interleaved(list(there), list(wanted)):
        if element in wanted:
            result.append(merged(there.get(element, [None])[0], wanted[element], shape.items))
        else:
            result += there[element]
    return result


def _pruned_fields(value: Object, last: Fields, kept: Fields, shape: Shape) -> Object:
    result: Object = {}
    for name, inner in value.items():
        had, has = last.get(field(name)), kept.get(field(name))
        named = name in shape.fields
        if had is None:
            result[name] = inner
        elif not _goes(had, has, named):
            left = pruned(inner, had, has or {}, shape.child(name))
            if left == inner or left not in ({}, []):
                result[name] = left
    return result


def _pruned_items(value: Sequence[Any], last: Fields, kept: Fields, shape: Shape) -> list[Any]:
    result = []
    for element, items in shape.elements(value).items():
        had, has = last.get(element), kept.get(element)
        if had is None:
            result += items
        elif not _goes(had, has, named=False):
            result += [pruned(item, had, has or {}, shape.items) for item in items]
    return result


def _goes(had: Fields, has: Fields | None, named: bool) -> bool:
    was_in = named or is_member(had)
    is_kept = has is not None and (named or is_member(has))
    return was_in and not is_kept


def _fault_in_items(items: Sequence[Any], shape: Shape, path: str) -> str:
    seen = set()
    for at, item in enumerate(items):
        try:
            element = shape.element(item)
        except ValueError as lacking:
            what = "associative list with keys has an element that omits key field"
            return f'{path}: element {at}: {what} "{lacking}" (and doesn\'t have default value)'
        if element in seen:
            return f"{path}: duplicate entries for key {text_of([element])}"
        seen.add(element)
    return ""
