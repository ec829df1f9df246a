"""Decoding with care: malformed text, wrong types, unknown and duplicate fields, in the API server's words."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator
from typing import Any

import yaml

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.wire.schema import (
    INT_OR_STRING,
    MICRO_TIME,
    QUANTITY,
    TIME,
    Field,
    fields_of,
)

DEEPEST = 100
_LIMITS = {"int32": 2**31, "int64": 2**63}
_TOP = ("apiVersion", "kind")


def decode_json(body: bytes) -> tuple[Any, list[str]]:
    """The value, and a doubt for each duplicate field. Raises ApiError 400."""
    doubts: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        as_dict = dict(found)
        if len(as_dict) != len(found):
            names = [name for name, _ in found]
            doubts.extend(f'duplicate field "{n}"' for n in dict.fromkeys(names) if names.count(n) > 1)
        return as_dict

    try:
        value = json.loads(body, object_pairs_hook=pairs, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise problems.bad_request(f"couldn't get version/kind; json parse error: {error}") from error
    _check_depth(value)
    return value, doubts


def _no_constant(name: str) -> None:
    raise ValueError(f"invalid character in {name}: no JSON value")


class _Loader(yaml.SafeLoader):
    """Notes duplicate keys, and leaves times as text, as JSON has them."""

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self.doubts: list[str] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    self.doubts.append(f'duplicate field "{key.value}"')
                seen.add(key.value)
        found = super().construct_mapping(node, deep)
        return {key if isinstance(key, str) else json.dumps(key, default=str): found[key] for key in found}


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def decode_yaml(body: bytes) -> tuple[Any, list[str]]:
    """The same for YAML, which JSON is too."""
    loader: _Loader | None = None
    try:
        loader = _Loader(body)
        value = loader.get_single_data()
    except (yaml.YAMLError, UnicodeDecodeError, ValueError, TypeError, RecursionError) as error:
        raise problems.bad_request(f"error decoding YAML: {error}") from error
    finally:
        if loader is not None:
            loader.dispose()
    _check_depth(value)
    return value, loader.doubts


def _check_depth(value: Any) -> None:
    """Refuse what is nested so deep that no real object is, before anything recurses into it."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise problems.bad_request(f"the body is nested more than {DEEPEST} levels deep")


def json_type(value: Any) -> str:
    """What Go's decoder calls a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def unknown_fields(message: str, obj: Object) -> list[str]:
    """`unknown field "spec.replicaz"` for each field that the kind does not have."""
    return [f'unknown field "{path}"' for path in _unknown(message, obj, "", _TOP)]


def _unknown(message: str, obj: Any, at: str, also: tuple[str, ...] = ()) -> Iterator[str]:
    fields = fields_of(message)
    for name, value in obj.items():
        field = fields.get(name)
        if field is None:
            if name not in also:
                yield f"{at}{name}"
        elif field.message:
            for path, inner in _inner(field, value, f"{at}{name}"):
                yield from _unknown(field.message, inner, f"{path}.")


def _inner(field: Field, value: Any, at: str) -> Iterator[tuple[str, Any]]:
    """The mappings in a field's value, each with its path."""
    if field.repeated and isinstance(value, list):
        found = [(f"{at}[{n}]", item) for n, item in enumerate(value)]
    elif field.map and isinstance(value, dict):
        found = [(f"{at}.{key}", item) for key, item in value.items()]
    else:
        found = [(at, value)]
    return ((path, item) for path, item in found if isinstance(item, dict))


def pruned(message: str, obj: Object) -> Object:
    """A copy without unknown fields."""
    return _pruned(message, obj, _TOP)


def _pruned(message: str, obj: Any, also: tuple[str, ...] = ()) -> Any:
    if not isinstance(obj, dict):
        return obj
    fields = fields_of(message)
    kept: Object = {}
    for name, value in obj.items():
        field = fields.get(name)
        if field is None:
            if name in also:
                kept[name] = value
        elif not field.message:
            kept[name] = value
        elif field.repeated and isinstance(value, list):
            kept[name] = [_pruned(field.message, item) for item in value]
        elif field.map and isinstance(value, dict):
            kept[name] = {key: _pruned(field.message, item) for key, item in value.items()}
        else:
            kept[name] = _pruned(field.message, value)
    return kept


def check_types(kind: Kind, obj: Object) -> None:
    """Raise ApiError 400, in the words of Go's decoder, for a field whose value has a wrong type."""
    for at, name in (("apiVersion", "apiVersion"), ("kind", "kind")):
        if not isinstance(obj.get(name, ""), str):
            raise _wrong(kind, obj[name], kind.kind, at, "string")
    _check(kind, kind.message, obj, "")


def _check(kind: Kind, message: str, obj: Object, at: str) -> None:
    fields = fields_of(message)
    short = message.rsplit(".", 1)[-1]
    for name, value in obj.items():
        field = fields.get(name)
        if field is None or value is None:
            continue
        where = f"{at}{name}"
        if field.repeated or field.map:
            if not isinstance(value, list if field.repeated else dict):
                go = "[]" if field.repeated else "map[string]"
                raise _wrong(kind, value, short, where, go + field.type.rsplit(".", 1)[-1])
            items = value if field.repeated else value.values()
        else:
            items = (value,)
        for item in items:
            if field.message:
                if isinstance(item, dict):
                    _check(kind, field.message, item, f"{where}.")
                elif item is not None:
                    raise _wrong(kind, item, short, where, field.type.rsplit(".", 1)[-1])
            elif item is not None and (wanted := _misfit(field.type, item)):
                raise _wrong(kind, item, short, where, wanted)


def _misfit(wanted: str, value: Any) -> str:
    """Empty when a scalar fits, else the Go type that was wanted."""
    if wanted in _LIMITS:
        limit = _LIMITS[wanted]
        fits = type(value) is int and -limit <= value < limit
        return "" if fits else wanted
    if wanted == "bool":
        return "" if isinstance(value, bool) else "bool"
    if wanted == "string":
        return "" if isinstance(value, str) else "string"
    if wanted in (TIME, MICRO_TIME):
        return "" if isinstance(value, str) else "v1.Time"
    if wanted == "bytes":
        return "" if _is_base64(value) else "[]uint8"
    if wanted in (QUANTITY, INT_OR_STRING):
        fits = isinstance(value, str | int | float) and not isinstance(value, bool)
        return "" if fits else wanted.rsplit(".", 1)[-1]
    return ""


def _is_base64(value: Any) -> bool:
    try:
        base64.b64decode(value.encode() if isinstance(value, str) else b"!", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return False
    return True


def _wrong(kind: Kind, value: Any, struct: str, at: str, wanted: str) -> problems.ApiError:
    return problems.bad_request(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: json: cannot unmarshal '
        f"{json_type(value)} into Go struct field {struct}.{at} of type {wanted}"
    )
