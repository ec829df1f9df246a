"""What an openAPIV3Schema objects to in an object: a library finds it, the words are the API server's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jsonschema_rs import Draft4Validator, ValidationError

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import Cause

Schema = dict[str, Any]
_TOP = ("apiVersion", "kind", "metadata")
# What is not JSON Schema's, or would mean something else there.
_NOT_PLAIN = {"nullable", "format", "default", "example", "externalDocs", "$ref", "$schema", "id"}
_BOUNDS: Mapping[str, str] = {
    "minimum": "be greater than or equal to {}",
    "exclusiveMinimum": "be greater than {}",
    "maximum": "be less than or equal to {}",
    "exclusiveMaximum": "be less than {}",
    "multipleOf": "be a multiple of {}",
    "minLength": "be at least {} chars long",
    "minItems": "have at least {} items",
    "minProperties": "have at least {} properties",
    "maxProperties": "have at most {} properties",
    "pattern": "match '{}'",
}


def validate(obj: Object, schema: Schema) -> list[Cause]:
    """What the schema objects to; apiVersion, kind and metadata are not its business."""
    shown = {name: value for name, value in obj.items() if name not in _TOP}
    try:
        # The dialect in which exclusiveMinimum is a flag, as in OpenAPI 3.0.
        validator = Draft4Validator(_plain(_without_top(schema)))
    except ValueError as error:
        wrong = str(error).splitlines()[0]
        return [Cause("FieldValueInvalid", f"the schema of the CustomResourceDefinition: {wrong}", "<nil>")]
    causes = map(_cause, validator.iter_errors(shown))
    return sorted(causes, key=lambda cause: (cause.field, cause.message))


def _without_top(schema: Schema) -> Schema:
    properties = schema.get("properties") or {}
    required = schema.get("required") or ()
    return {
        **schema,
        "properties": {name: inner for name, inner in properties.items() if name not in _TOP},
        "required": [name for name in required if name not in _TOP],
    }


def _plain(schema: Any) -> Any:
    """The schema as JSON Schema has it: `nullable` and int-or-string are Kubernetes' own."""
    if not isinstance(schema, dict):
        return schema
    found = {
        key: value for key, value in schema.items() if not key.startswith("x-") and key not in _NOT_PLAIN
    }
    if schema.get("x-kubernetes-int-or-string"):
        found["type"] = ["integer", "string"]
    if schema.get("nullable"):
        found.update({"type": [found["type"], "null"]} if isinstance(found.get("type"), str) else {})
        found.update({"enum": [*found["enum"], None]} if "enum" in found else {})
    for key in ("items", "additionalProperties", "not"):
        if key in found:
            found[key] = _plain(found[key])
    for key in ("allOf", "anyOf", "oneOf"):
        if isinstance(found.get(key), list):
            found[key] = [_plain(inner) for inner in found[key]]
    if isinstance(properties := found.get("properties"), dict):
        found["properties"] = {name: _plain(inner) for name, inner in properties.items()}
    if not found.get("required"):
        found.pop("required", None)  # an empty list is no JSON Schema
    return found


def _cause(error: ValidationError) -> Cause:
    kind: Any = error.kind  # `name` is the keyword, `value` what the schema has there
    said = _WORDS.get(kind.name)
    path = _path(error.instance_path)
    if said is None:
        return Cause("FieldValueInvalid", f"Invalid value: {_quoted(error.instance)}: {error.message}", path)
    return said(path, error.instance, kind.name, kind.value)


def _path(parts: Iterable[str | int]) -> str:
    written = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return written.removeprefix(".") or "<nil>"


def _required(path: str, _instance: Any, _keyword: str, missing: str) -> Cause:
    return Cause("FieldValueRequired", "Required value", missing if path == "<nil>" else f"{path}.{missing}")


def _enum(path: str, instance: Any, _keyword: str, options: list[Any]) -> Cause:
    known = ", ".join(_quoted(option) for option in options if option is not None)
    message = f"Unsupported value: {_quoted(instance)}: supported values: {known}"
    return Cause("FieldValueNotSupported", message, path)


def _type(path: str, instance: Any, _keyword: str, wanted: str | list[str]) -> Cause:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    found = names.get(type(instance), "null")
    types = wanted if isinstance(wanted, str) else ",".join(name for name in wanted if name != "null")
    message = f'Invalid value: "{found}": {path} in body must be of type {types}: "{found}"'
    return Cause("FieldValueTypeInvalid", message, path)


def _bound(path: str, instance: Any, keyword: str, limit: Any) -> Cause:
    message = f"{path} in body should {_BOUNDS[keyword].format(limit)}"
    return Cause("FieldValueInvalid", f"Invalid value: {_quoted(instance)}: {message}", path)


def _too_long(path: str, _instance: Any, _keyword: str, limit: int) -> Cause:
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} bytes", path)


def _too_many(path: str, instance: Any, _keyword: str, limit: int) -> Cause:
    return Cause("FieldValueTooMany", f"Too many: {len(instance)}: must have at most {limit} items", path)


def _quoted(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower() if value is not None else "null"
    return str(value) if isinstance(value, int | float) else f'"{value}"'


_WORDS: Mapping[str, Callable[[str, Any, str, Any], Cause]] = {
    **dict.fromkeys(_BOUNDS, _bound),
    "required": _required,
    "enum": _enum,
    "type": _type,
    "maxLength": _too_long,
    "maxItems": _too_many,
}
