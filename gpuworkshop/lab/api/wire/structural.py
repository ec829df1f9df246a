"""Custom resources under their openAPIV3Schema: pruning, defaults, validation."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import Cause

Schema = dict[str, Any]
_TOP = ("apiVersion", "kind", "metadata")


def unknown_fields(obj: Object, schema: Schema) -> list[str]:
    """`unknown field "spec.x"` for each field that the schema does not have."""
    return [f'unknown field "{".".join(path)}"' for path, _ in _unknown(obj, schema, ())]


def prune(obj: Object, schema: Schema) -> None:
    """Drop the unknown fields, in place."""
    for path, holder in list(_unknown(obj, schema, ())):
        holder.pop(path[-1], None)


def _unknown(
    value: Any, schema: Schema, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    if isinstance(value, list):
        for n, item in enumerate(value):
            yield from _unknown(item, schema.get("items") or {}, (*path, str(n)))
    if not isinstance(value, dict) or schema.get("x-kubernetes-embedded-resource"):
        return
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    opened = bool(schema.get("x-kubernetes-preserve-unknown-fields")) or (not properties and more is None and path == ())
    for name, inner in value.items():
        if name in properties:
            if path or name not in _TOP:
                yield from _unknown(inner, properties[name] or {}, (*path, name))
        elif isinstance(more, dict):
            yield from _unknown(inner, more, (*path, name))
        elif not (more or opened or (not path and name in _TOP)):
            yield (*path, name), value


def set_defaults(value: Any, schema: Schema) -> None:
    """Fill in what the schema has a default for, in place."""
    if isinstance(value, list):
        for item in value:
            set_defaults(item, schema.get("items") or {})
    elif isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            if name not in value and "default" in inner:
                value[name] = copy.deepcopy(inner["default"])
            if name in value:
                set_defaults(value[name], inner)
        if isinstance(more := schema.get("additionalProperties"), dict):
            for name in value.keys() - (schema.get("properties") or {}).keys():
                set_defaults(value[name], more)


def validate(obj: Object, schema: Schema) -> list[Cause]:
    """What the schema objects to; metadata is not its business."""
    validator = jsonschema_rs.Draft7Validator(_plain(schema))
    shown = {name: value for name, value in obj.items() if name not in _TOP}
    return sorted(map(_cause, validator.iter_errors(shown)), key=lambda cause: cause.field)


def _plain(schema: Schema, top: bool = True) -> Schema:
    """The schema as JSON Schema has it: `nullable` and int-or-string are Kubernetes' own."""
    found = {key: value for key, value in schema.items() if not key.startswith("x-") and key != "nullable"}
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    if schema.get("nullable") and isinstance(found.get("type"), str):
        found["type"] = [found["type"], "null"]
    for key in ("properties", "patternProperties"):
        if isinstance(found.get(key), dict):
            found[key] = {
                name: _plain(inner, False)
                for name, inner in found[key].items()
                if isinstance(inner, dict) and not (top and name in _TOP)
            }
    for key in ("items", "additionalProperties", "not"):
        if isinstance(found.get(key), dict):
            found[key] = _plain(found[key], False)
    for key in ("allOf", "anyOf", "oneOf"):
        if isinstance(found.get(key), list):
            found[key] = [_plain(inner, False) for inner in found[key]]
    if top and isinstance(found.get("required"), list):
        found["required"] = [name for name in found["required"] if name not in _TOP]
    found.pop("format", None)
    return found


def _cause(error: jsonschema_rs.ValidationError) -> Cause:
    kind: Any = error.kind
    path = ".".join(map(str, error.instance_path)) or "<nil>"
    if kind.name == "required":
        where = str(kind.property) if path == "<nil>" else f"{path}.{kind.property}"
        return Cause("FieldValueRequired", "Required value", where)
    if kind.name == "enum":
        options = ", ".join(f'"{option}"' for option in kind.options)
        message = f'Unsupported value: "{error.instance}": supported values: {options}'
        return Cause("FieldValueNotSupported", message, path)
    reason = "FieldValueTypeInvalid" if kind.name == "type" else "FieldValueInvalid"
    shown = f'"{error.instance}"' if isinstance(error.instance, str | dict | list) else error.instance
    return Cause(reason, f"Invalid value: {shown}: {error.message}", path)
