"""Whether an object is of its kind: types and unknown fields, in the API server's own words."""

from __future__ import annotations

import base64
import binascii
import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from gpuworkshop.lab.api import problems, quantities
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.wire import schema
from gpuworkshop.lab.api.wire.decoding import decode_json, decode_yaml
from gpuworkshop.lab.api.wire.schema import Field, fields_of

__all__ = ["check_types", "decode_json", "decode_yaml", "json_type", "pruned", "unknown_fields"]

_LIMITS = {"int32": 2**31, "int64": 2**63}
_TOP = ("apiVersion", "kind")
_EMPTY: Mapping[str, Any] = {
    "int32": 0,
    "int64": 0,
    "bool": False,
    schema.QUANTITY: "0",
    schema.INT_OR_STRING: 0,
    schema.FIELDS_V1: {},
    schema.RAW_EXTENSION: {},
    **{name: [] for name in schema.EXTRA_VALUES},
}
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)


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
    """A copy without unknown fields, and without nulls, which for Go are fields that are not there.

    A null in a list or in a map is for Go the empty value of the type.
    """
    kept: Object = _pruned(message, obj, _TOP)
    return kept


def _pruned(message: str, obj: Any, also: tuple[str, ...] = ()) -> Any:
    if not isinstance(obj, dict):
        return obj
    fields = fields_of(message)
    kept: Object = {}
    for name, value in obj.items():
        field = fields.get(name)
        if value is None or (field is None and name not in also):
            continue
        if field is None:
            kept[name] = value
        elif field.repeated and isinstance(value, list):
            kept[name] = [_value(field, item) for item in value]
        elif field.map and isinstance(value, dict):
            kept[name] = {key: _value(field, item) for key, item in value.items()}
        else:
            kept[name] = _value(field, value)
    return kept


def _value(field: Field, value: Any) -> Any:
    """One value of a field, or one of its values."""
    if value is None:
        return {} if field.message else copy.copy(_EMPTY.get(field.type, ""))
    return _pruned(field.message, value) if field.message else value


def check_types(kind: Kind, obj: Object) -> None:
    """Raise ApiError 400, in the words of Go's decoder, for a field whose value has a wrong type."""
    try:
        for name in _TOP:
            if not isinstance(obj.get(name, ""), str):
                raise _Misfit(obj[name], f"{kind.kind}.{name}", "string")
        _check(kind.message, obj, "")
    except ValueError as error:
        message = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {error}'
        raise problems.bad_request(message) from error


class _Misfit(ValueError):
    """A value that Go's decoder does not put into a field."""

    def __init__(self, value: Any, field: str, wanted: str) -> None:
        found = json_type(value)
        if found == "number" and wanted in _LIMITS:
            found += f" {value}"
        super().__init__(f"json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")


def _check(message: str, obj: Object, at: str) -> None:
    fields, struct = fields_of(message), _short(message)
    for name, value in obj.items():
        field = fields.get(name)
        if field is None or value is None:
            continue
        where = f"{struct}.{at}{name}"
        for item in _items(field, value, where):
            if item is None:
                continue
            if not field.message:
                _check_scalar(field.type, item, where)
            elif isinstance(item, dict):
                _check(field.message, item, f"{at}{name}.")
            else:
                raise _Misfit(item, where, _go_type(field.type))


def _items(field: Field, value: Any, where: str) -> Iterable[Any]:
    if field.repeated:
        if not isinstance(value, list):
            raise _Misfit(value, where, f"[]{_go_type(field.type)}")
        return value
    if field.map:
        if not isinstance(value, dict):
            raise _Misfit(value, where, f"map[string]{_go_type(field.type)}")
        return value.values()
    return (value,)


def _check_scalar(wanted: str, value: Any, where: str) -> None:
    if wanted in (schema.FIELDS_V1, schema.RAW_EXTENSION):
        return
    if wanted == schema.QUANTITY:
        quantities.parse(value)
    elif wanted in _LIMITS:
        if type(value) is not int or not -_LIMITS[wanted] <= value < _LIMITS[wanted]:
            raise _Misfit(value, where, wanted)
    elif wanted == "bool":
        if not isinstance(value, bool):
            raise _Misfit(value, where, wanted)
    elif wanted == schema.INT_OR_STRING:
        if type(value) not in (int, str):
            raise _Misfit(value, where, "intstr.IntOrString")
    elif wanted in schema.EXTRA_VALUES:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise _Misfit(value, where, _go_type(wanted))
    elif not isinstance(value, str):
        raise _Misfit(value, where, _go_type(wanted))
    elif wanted == "bytes":
        _check_base64(value)
    elif wanted in (schema.TIME, schema.MICRO_TIME):
        _check_time(value)


def _check_base64(value: str) -> None:
    try:
        base64.b64decode(value.encode(), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        legal = re.match(r"[A-Za-z0-9+/]*", value)
        raise ValueError(f"illegal base64 data at input byte {legal.end() if legal else 0}") from error


def _check_time(value: str) -> None:
    layout = "2006-01-02T15:04:05Z07:00"
    if not _TIME.fullmatch(value):
        raise ValueError(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"')
    try:
        datetime.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f'parsing time "{value}": {error}') from error


def _go_type(wanted: str) -> str:
    if wanted == "bytes":
        return "[]uint8"
    return f"v1.{_short(wanted)}" if "." in wanted else wanted


def _short(message: str) -> str:
    return message.rsplit(".", 1)[-1]
