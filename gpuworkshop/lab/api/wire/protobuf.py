"""Kubernetes objects in protobuf, as kubectl and helm send what they create from typed structs.

The messages are built from the schema's table and parsed by google.protobuf; what stands apart in JSON
(quantities, times, embedded structs) is turned into its JSON form here.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto
from google.protobuf.message import DecodeError, Message

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.kinds import BUILT_IN
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.wire import schema
from gpuworkshop.lab.api.wire.schema import Field

MAGIC = b"k8s\x00"
_SCALARS = {
    "string": Proto.TYPE_STRING,
    "int32": Proto.TYPE_INT32,
    "int64": Proto.TYPE_INT64,
    "bool": Proto.TYPE_BOOL,
    "bytes": Proto.TYPE_BYTES,
}
_META = "k8s.io.apimachinery.pkg.apis.meta.v1."
_OTHERS = {
    "DeleteOptions": _META + "DeleteOptions",
    "Scale": "k8s.io.api.autoscaling.v1.Scale",
    "Eviction": "k8s.io.api.policy.v1.Eviction",
    "TokenRequest": "k8s.io.api.authentication.v1.TokenRequest",
    "Binding": "k8s.io.api.core.v1.Binding",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Structs that Go writes although they are empty, and that say nothing in JSON then.
_ALWAYS = ("spec", "template", "metadata")


def decode(body: bytes) -> Object:
    """The object in a body, in its JSON form. Raises ApiError 400 for anything else."""
    if not body.startswith(MAGIC):
        raise problems.bad_request("the body is no protobuf of Kubernetes: it does not begin with k8s\\0")
    try:
        envelope = _class("Unknown").FromString(body[len(MAGIC) :])
        api_version, kind = envelope.typeMeta.apiVersion, envelope.typeMeta.kind
        message = _message_of(api_version, kind)
        parsed = _class(message).FromString(envelope.raw)
        obj = _to_json(message, parsed)
    except (DecodeError, UnicodeDecodeError, OverflowError) as error:
        raise problems.bad_request(f"the protobuf body is malformed: {error}") from error
    return {"apiVersion": api_version, "kind": kind, **obj}


def encode(obj: Object) -> bytes:
    """The body of an object in its JSON form; the inverse of `decode`."""
    message = _message_of(obj["apiVersion"], obj["kind"])
    envelope = _class("Unknown")()
    envelope.typeMeta.apiVersion, envelope.typeMeta.kind = obj["apiVersion"], obj["kind"]
    filled = _class(message)()
    _fill(message, filled, obj)
    envelope.raw = filled.SerializeToString(deterministic=True)
    return MAGIC + bytes(envelope.SerializeToString(deterministic=True))


def _message_of(api_version: str, kind: str) -> str:
    for built_in in BUILT_IN:
        if (built_in.api_version, built_in.kind) == (api_version, kind) and built_in.message:
            return built_in.message
    if kind in _OTHERS:
        return _OTHERS[kind]
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
                obj[field.name] = {key: _value(field, item) for key, item in value.items()}
        elif parsed.HasField(field.name):
            found = _value(field, value)
            if found is not None and (found != {} or field.name not in _ALWAYS):
                obj[field.name] = found
    return {name: value for name, value in obj.items() if value != "" or name in ("value", "key", "topologyKey")}


def _value(field: Field, value: Any) -> Any:
    if field.type == schema.QUANTITY:
        return value.string
    if field.type in (schema.TIME, schema.MICRO_TIME):
        return _time(field, value)
    if field.type == schema.INT_OR_STRING:
        return value.strVal if value.type else value.intVal
    if field.type in (schema.FIELDS_V1, schema.RAW_EXTENSION):
        return _embedded_json(value)
    if field.type == "bytes":
        return base64.b64encode(value).decode()
    return _to_json(field.type, value) if field.message else value


def _time(field: Field, value: Any) -> str | None:
    if not value.seconds and not value.nanos:
        return None
    at = _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    if field.type == schema.MICRO_TIME:
        return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _embedded_json(value: Any) -> Any:
    from gpuworkshop.lab.api.wire import strict

    raw = value.Raw if hasattr(value, "Raw") else value.raw
    return strict.decode_json(raw)[0] if raw else None


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
        if isinstance(value, str):
            slot.strVal = value
        else:
            slot.intVal = value
    elif field.type in (schema.FIELDS_V1, schema.RAW_EXTENSION):
        from gpuworkshop.lab.api.objects import encoded

        setattr(slot, "Raw" if field.type == schema.FIELDS_V1 else "raw", encoded(value))
    else:
        _fill(field.type, slot, value)


def _scalar(field: Field, value: Any) -> Any:
    try:
        return base64.b64decode(value) if field.type == "bytes" else value
    except binascii.Error as error:
        raise problems.bad_request(f"{field.name}: {error}") from error


def _class(message: str) -> Any:
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(message))  # type: ignore[no-untyped-call]


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    """Every message of the table, in one file for each package."""
    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(name="kubernetes.proto", syntax="proto2")
    packages: dict[str, list[str]] = {}
    for message in schema.messages():
        packages.setdefault(message.rpartition(".")[0], []).append(message)
    # One file holds one package, so that all share one, and names are kept by nesting.
    roots: dict[str, descriptor_pb2.DescriptorProto] = {}
    for package, names in packages.items():
        parent = _nested(file, roots, package)
        for name in names:
            _describe(parent.nested_type.add(), name)
    _describe_envelope(file)
    pool.Add(file)  # type: ignore[no-untyped-call]
    return pool


def _nested(
    file: descriptor_pb2.FileDescriptorProto, roots: dict[str, descriptor_pb2.DescriptorProto], package: str
) -> descriptor_pb2.DescriptorProto:
    """An empty message for each part of a package's name: `k8s`, in it `io`, and so on."""
    path = ""
    parent: Any = file
    for part in package.split("."):
        path = f"{path}.{part}"
        if path not in roots:
            types = parent.message_type if parent is file else parent.nested_type
            roots[path] = types.add()
            roots[path].name = part
        parent = roots[path]
    return roots[path]


def _describe(into: descriptor_pb2.DescriptorProto, message: str) -> None:
    into.name = message.rpartition(".")[2]
    for field in schema.wire_fields(message):
        described = into.field.add()
        described.name, described.number = field.name, field.number
        described.label = Proto.LABEL_REPEATED if field.repeated or field.map else Proto.LABEL_OPTIONAL
        if field.map:
            entry = into.nested_type.add()
            entry.name = field.name[0].upper() + field.name[1:] + "Entry"
            entry.options.map_entry = True
            for number, name, kind in ((1, "key", "string"), (2, "value", field.type)):
                part = entry.field.add()
                part.name, part.number, part.label = name, number, Proto.LABEL_OPTIONAL
                _type(part, kind)
            described.type = Proto.TYPE_MESSAGE
            described.type_name = f".{message}.{entry.name}"
        else:
            _type(described, field.type)


def _type(field: Proto, kind: str) -> None:
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type, field.type_name = Proto.TYPE_MESSAGE, f".{kind}"


def _describe_envelope(file: descriptor_pb2.FileDescriptorProto) -> None:
    """runtime.Unknown, which every body is wrapped in."""
    type_meta = file.message_type.add()
    type_meta.name = "TypeMeta"
    for number, name in ((1, "apiVersion"), (2, "kind")):
        type_meta.field.add(name=name, number=number, label=Proto.LABEL_OPTIONAL, type=Proto.TYPE_STRING)
    unknown = file.message_type.add()
    unknown.name = "Unknown"
    unknown.field.add(
        name="typeMeta",
        number=1,
        label=Proto.LABEL_OPTIONAL,
        type=Proto.TYPE_MESSAGE,
        type_name=".TypeMeta",
    )
    unknown.field.add(name="raw", number=2, label=Proto.LABEL_OPTIONAL, type=Proto.TYPE_BYTES)
