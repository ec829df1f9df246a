"""Strategic merge patch: a merge patch in which lists merge by the key that the type names.

kubectl sends it for apply (client side), set image, set env, taint, cordon, edit and patch. Directives say
what plain merging cannot: `$patch: replace|delete|merge` in a mapping or an item, `$retainKeys` for those to
keep, `$setElementOrder/NAME` for the order of a list, `$deleteFromPrimitiveList/NAME` for scalars to take
out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.patching.ordering import in_order
from gpuworkshop.lab.api.patching.shapes import Shape, shape_of
from gpuworkshop.lab.api.problems import ApiError, bad_request

PATCH, RETAIN = "$patch", "$retainKeys"
ORDER, DELETE_FROM = "$setElementOrder/", "$deleteFromPrimitiveList/"


def strategic_merge(base: Object, patch: Object, message: str) -> Object:
    """`base` after the patch; neither is changed. `message` names the type. Raises ApiError."""
    return _merged(base, patch, shape_of(message))


def _merged(base: Mapping[str, Any], patch: Mapping[str, Any], shape: Shape) -> Object:
    directive = patch.get(PATCH, "merge")
    if directive == "replace":
        return _plain_fields(patch)
    if directive == "delete":
        return {}
    if directive != "merge":
        raise _refused(f"unknown patch type: {directive} in map: {_go_text(patch)}")
    merged = _retained(base, patch)
    for name, value in patch.items():
        if name.startswith(DELETE_FROM):
            _delete_from(merged, name.removeprefix(DELETE_FROM), value)
        elif not name.startswith("$"):
            _merge_field(merged, name, value, shape.child(name))
    for name, order in patch.items():
        if name.startswith(ORDER):
            field = name.removeprefix(ORDER)
            _set_order(base, merged, patch, field, order, shape.child(field).patch_key)
    return merged


def _merge_field(merged: Object, name: str, value: Any, shape: Shape) -> None:
    before = merged.get(name)
    if value is None:
        merged.pop(name, None)
    elif isinstance(before, dict) and isinstance(value, dict):
        merged[name] = _merged(before, value, shape)
    elif _is_directed(value):
        merged.pop(name, None)
    elif isinstance(before, list) and isinstance(value, list) and (shape.patch_key or shape.patch_merges):
        merged[name] = _merged_list(before, value, shape)
    else:
        merged[name] = _plain(value)


def _merged_list(before: Sequence[Any], patch: Sequence[Any], shape: Shape) -> list[Any]:
    key = shape.patch_key
    if not key:
        united = [*before, *(value for value in patch if value not in before)]
        return in_order(list(_once(united)), _once(patch), before)
    kept, wanted = _directed(before, patch, key)
    for item in wanted:
        at = _index(kept, key, _key_of(item, key))
        if at is None:
            kept.append(_plain(item))
        else:
            kept[at] = _merged(kept[at], item, shape.items)
    return in_order(kept, wanted, before, key)


def _directed(before: Sequence[Any], patch: Sequence[Any], key: str) -> tuple[list[Any], list[Any]]:
    """What is left of the list after the items of the patch that are directives, and the other items."""
    if not all(isinstance(item, dict) for item in [*before, *patch]):
        raise bad_request("invalid patch format of primitive list")
    kept, replaces = list(before), False
    for item in patch:
        directive = item.get(PATCH)
        if directive == "delete":
            gone = _key_of(item, key)
            kept = [found for found in kept if found.get(key) != gone]
        elif directive == "replace":
            replaces = True
        elif directive == "merge":
            raise _refused("merging lists cannot yet be specified in the patch")
        elif directive is not None:
            raise _refused(f"unknown patch type: {directive} in map: {_go_text(item)}")
    return [] if replaces else kept, [item for item in patch if PATCH not in item]


def _retained(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Object:
    keys = patch.get(RETAIN)
    if keys is None:
        return dict(base)
    if not isinstance(keys, list):
        raise bad_request("invalid patch format of retainKeys")
    if any(
        not name.startswith("$") and value is not None and name not in keys for name, value in patch.items()
    ):
        raise _refused("patch content doesn't match retainKeys list")
    return {name: value for name, value in base.items() if name in keys}


def _delete_from(merged: Object, field: str, gone: Any) -> None:
    if not isinstance(gone, list):
        raise bad_request("invalid patch format of primitive list")
    before = merged.get(field)
    if isinstance(before, list):
        merged[field] = [value for value in before if value not in gone]


def _set_order(
    base: Mapping[str, Any], merged: Object, patch: Mapping[str, Any], field: str, order: Any, key: str
) -> None:
    if not isinstance(order, list):
        raise bad_request("invalid patch format of setElementOrder list")
    _check_order(patch.get(field) or [], order, key)
    if isinstance(merged.get(field), list):
        merged[field] = in_order(merged[field], order, base.get(field) or [], key)


def _check_order(items: Sequence[Any], order: Sequence[Any], key: str) -> None:
    """The items of the patch stand in the list that orders them, in the same order."""
    listed = iter([_key_of(item, key) if key else item for item in order])
    for item in items:
        if _is_directed(item):
            continue
        value = _key_of(item, key) if key else item
        if value not in listed:  # which takes from the iterator what stands before
            seen, wanted = _go_text(items), _go_text(order)
            message = f"The order in patch list:\n{seen}\n doesn't match $setElementOrder list:\n{wanted}\n"
            raise _refused(message)


def _plain(value: Any) -> Any:
    """What a patch adds, without directives and without what it deletes."""
    if isinstance(value, dict):
        return _plain_fields(value)
    if isinstance(value, list):
        return [_plain(item) for item in value if not _is_directed(item)]
    return value


def _plain_fields(patch: Mapping[str, Any]) -> Object:
    return {
        name: _plain(inner)
        for name, inner in patch.items()
        if inner is not None and not name.startswith("$") and not _is_directed(inner)
    }


def _is_directed(value: Any) -> bool:
    """Whether it says what to do with what is there; where nothing is, the real server drops it too."""
    return isinstance(value, dict) and PATCH in value


def _once(values: Sequence[Any]) -> list[Any]:
    return [value for at, value in enumerate(values) if value not in values[:at]]


def _index(items: Sequence[Mapping[str, Any]], key: str, value: Any) -> int | None:
    return next((at for at, item in enumerate(items) if item.get(key) == value), None)


def _key_of(item: Any, key: str) -> Any:
    if not isinstance(item, dict):
        raise bad_request("invalid patch format of setElementOrder list")
    if key not in item:
        raise _refused(f"map: {_go_text(item)} does not contain declared merge key: {key}")
    return item[key]


def _refused(message: str) -> ApiError:
    """The real server has no better answer to these than an internal error without a reason."""
    return ApiError(500, "", message)


def _go_text(value: Any) -> str:
    """A value as Go prints it, for the messages are the real server's."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{_go_text(inner)}' for name, inner in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(_go_text(inner) for inner in value)}]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "<nil>"}[value]
    return str(value)
