"""Custom resources under their openAPIV3Schema: unknown fields, pruning and defaults.

What the schema objects to in the values that are left, `structural_values` finds.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.wire.structural_values import validate

__all__ = ["prune", "set_defaults", "unknown_fields", "validate"]

Schema = dict[str, Any]
# The fields of every object; a schema may describe them, and cannot change them.
_TOP = ("apiVersion", "kind", "metadata")


def unknown_fields(obj: Object, schema: Schema) -> list[str]:
    """`unknown field "spec.x"` for each field that the schema does not have."""
    return [f'unknown field "{path}"' for path, _, _ in _unknown(obj, schema, "")]


def prune(obj: Object, schema: Schema) -> None:
    """Drop the unknown fields, in place."""
    for _, holder, name in list(_unknown(obj, schema, "")):
        del holder[name]


def _unknown(value: Any, schema: Schema, at: str) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Each unknown field: its path, the mapping that has it, and its name there."""
    if isinstance(value, list):
        for n, item in enumerate(value):
            yield from _unknown(item, schema.get("items") or {}, f"{at}[{n}]")
    if not isinstance(value, dict):
        return
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    opened = bool(schema.get("x-kubernetes-preserve-unknown-fields") or more is True) or not (schema or at)
    for name, inner in value.items():
        path = f"{at}.{name}" if at else name
        if (embedded or not at) and name in _TOP:
            continue
        if name in properties:
            yield from _unknown(inner, properties[name] or {}, path)
        elif isinstance(more, dict):
            yield from _unknown(inner, more, path)
        elif not opened:
            yield path, value, name


def set_defaults(value: Any, schema: Schema) -> None:
    """Fill in what the schema has a default for, in place."""
    if isinstance(value, list):
        for item in value:
            set_defaults(item, schema.get("items") or {})
    elif isinstance(value, dict):
        properties = schema.get("properties") or {}
        for name, inner in properties.items():
            # A null where none may be is as good as nothing.
            missing = value.get(name) is None and not (name in value and inner.get("nullable"))
            if missing and "default" in inner:
                value[name] = copy.deepcopy(inner["default"])
            if name in value:
                set_defaults(value[name], inner)
        if isinstance(more := schema.get("additionalProperties"), dict):
            for name in value.keys() - properties.keys():
                set_defaults(value[name], more)
