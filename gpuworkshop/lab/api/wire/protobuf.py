"""Kubernetes objects in protobuf, as kubectl and helm send what they create from typed structs.

google.protobuf parses and writes the messages. What stands apart in JSON (quantities, times, embedded
structs) is turned into its JSON form here, and zeros that Go's JSON would leave out are left out.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.message import DecodeError, Message

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.kinds import BUILT_IN
from gpuworkshop.lab.api.objects import Object, encoded
from gpuworkshop.lab.api.wire import schema, strict
from gpuworkshop.lab.api.wire.descriptors import UNKNOWN, message_class
from gpuworkshop.lab.api.wire.schema import Field

MAGIC = b"k8s\x00"
_KINDS = {(kind.api_version, kind.kind): kind.message for kind in BUILT_IN if kind.message}
# What is posted to a subresource, or with a deletion; clients write the version of the resource into some.
_OTHERS = {
    "Binding": "k8s.io.api.core.v1.Binding",
    "DeleteOptions": "k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "Eviction": "k8s.io.api.policy.v1.Eviction",
    "Scale": "k8s.io.api.autoscaling.v1.Scale",
    "TokenRequest": "k8s.io.api.authentication.v1.TokenRequest",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode(body: bytes) -> Object:
    """The object in a body, in its JSON form. Raises ApiError 400 for anything else."""
    if not body.startswith(MAGIC):
        raise problems.bad_request("provided data does not appear to be a protobuf message: no k8s\\0 first")
    try:
        envelope = message_class(UNKNOWN).FromString(body[len(MAGIC) :])
        api_version, kind = envelope.typeMeta.apiVersion, envelope.typeMeta.kind
        message = _message_of(api_version, kind)
        obj = _to_json(message, message_class(message).FromString(envelope.raw))
    except (DecodeError, UnicodeDecodeError, OverflowError) as error:
        raise problems.bad_request(f"the protobuf body is malformed: {error}") from error
    return {"apiVersion": api_version, "kind": kind, **obj}


def encode(obj: Object) -> bytes:
    """The body of an object in its JSON form; `decode` makes the same of it again. Raises ApiError 400."""
    message = _message_of(obj["apiVersion"], obj["kind"])
    envelope = message_class(UNKNOWN)()
    envelope.typeMeta.apiVersion, envelope.typeMeta.kind = obj["apiVersion"], obj["kind"]
    content = message_class(message)()
    try:
        _fill(message, content, obj)
    except (TypeError, ValueError, AttributeError) as error:
        raise problems.bad_request(f"the object does not go into protobuf: {error}") from error
    envelope.raw = content.SerializeToString(deterministic=True)
    return MAGIC + bytes(envelope.SerializeToString(deterministic=True))


def _message_of(api_version: str, kind: str) -> str:
    if found := _KINDS.get((api_version, kind)) or _OTHERS.get(kind):
        return found
    raise problems.bad_request(f'no kind "{kind}" is registered for version "{api_version}"')


def _to_json(message: str, parsed: Message) -> Object:
    obj: Object = {}
    for field in schema.wire_fields(message):
        value = getattr(parsed, field.name)
        if field.inline:
            obj.update(_to_json(field.type, value))
        elif field.repeated:
            if value:
                obj[field.name] = [_value(field, item) for item in value]
        elif field.map:
            if value:
                obj[field.name] = {key: _value(field, value[key]) for key in sorted(map(_text, value))}
        elif parsed.HasField(field.name):
            found = _value(field, value)
            if field.pointer or field.required or found not in (None, "", 0) or "." in field.type:
                obj[field.name] = found
    return {name: value for name, value in obj.items() if value is not None}


def _value(field: Field, value: Any) -> Any:
    if field.type == schema.QUANTITY:
        return _text(value.string)
    if field.type in (schema.TIME, schema.MICRO_TIME):
        return _time(value, "microseconds" if field.type == schema.MICRO_TIME else "seconds")
    if field.type == schema.INT_OR_STRING:
        return _text(value.strVal) if value.type else value.intVal
    if field.type in (schema.FIELDS_V1, schema.RAW_EXTENSION):
        return strict.decode_json(value.raw)[0] if value.raw else None
    if field.type in schema.EXTRA_VALUES:
        return [_text(item) for item in value.items]
    if field.type == "bytes":
        return base64.b64encode(value).decode()
    if field.type == "string":
        return _text(value)
    return _to_json(field.type, value) if field.message else value


def _text(value: str | bytes) -> str:
    # What is not UTF-8 comes as bytes. Raises UnicodeDecodeError.
    return value.decode() if isinstance(value, bytes) else value


def _time(value: Any, precision: str) -> str | None:
    if not value.seconds and not value.nanos:
        return None
    at = _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    return at.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _fill(message: str, target: Any, obj: Object) -> None:
    for field in schema.wire_fields(message):
        if field.inline:
            inner = {name: obj[name] for name in schema.fields_of(field.type) if name in obj}
            if inner:
                _fill(field.type, getattr(target, field.name), inner)
        elif (value := obj.get(field.name)) is not None:
            _set(field, target, value)


def _set(field: Field, target: Any, value: Any) -> None:
    composite = "." in field.type
    slot = getattr(target, field.name)
    if field.repeated:
        for item in value:
            _write(field, slot.add(), item) if composite else slot.append(_scalar(field, item))
    elif field.map:
        for key, item in value.items():
            if composite:
                _write(field, slot[key], item)
            else:
                slot[key] = _scalar(field, item)
    elif composite:
        slot.SetInParent()
        _write(field, slot, value)
    else:
        setattr(target, field.name, _scalar(field, value))


def _write(field: Field, slot: Any, value: Any) -> None:
    if field.type == schema.QUANTITY:
        slot.string = str(value)
    elif field.type in (schema.TIME, schema.MICRO_TIME):
        since = datetime.fromisoformat(value) - _EPOCH
        slot.seconds = since.days * 86_400 + since.seconds
        slot.nanos = since.microseconds * 1000
    elif field.type == schema.INT_OR_STRING:
        slot.type = int(isinstance(value, str))
        setattr(slot, "strVal" if isinstance(value, str) else "intVal", value)
    elif field.type in (schema.FIELDS_V1, schema.RAW_EXTENSION):
        slot.raw = encoded(value)
    elif field.type in schema.EXTRA_VALUES:
        slot.items.extend(value)
    else:
        _fill(field.type, slot, value)


def _scalar(field: Field, value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True) if field.type == "bytes" else value
    except binascii.Error as error:
        raise ValueError(f"{field.name}: {error}") from error
