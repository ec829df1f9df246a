"""The messages of Kubernetes for google.protobuf, built from the schema's table rather than generated code.

All stand in one file without a package: their names are the full ones, with `_` for each dot.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

from gpuworkshop.lab.api.wire import schema

# The envelope of every body, and what it says of its content.
UNKNOWN = "k8s.io.apimachinery.pkg.runtime.Unknown"
_TYPE_META = "k8s.io.apimachinery.pkg.runtime.TypeMeta"
_SCALARS = {
    "string": FieldDescriptorProto.TYPE_STRING,
    "int32": FieldDescriptorProto.TYPE_INT32,
    "int64": FieldDescriptorProto.TYPE_INT64,
    "bool": FieldDescriptorProto.TYPE_BOOL,
    "bytes": FieldDescriptorProto.TYPE_BYTES,
}


@cache
def message_class(message: str) -> Any:
    """The class of a message, by its full name."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(_flat(message)))


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    file = FileDescriptorProto(name="kubernetes.proto", syntax="proto2")
    for message in schema.messages():
        _describe(file.message_type.add(name=_flat(message)), message)
    type_meta = file.message_type.add(name=_flat(_TYPE_META))
    _add(type_meta, 1, "apiVersion", "string")
    _add(type_meta, 2, "kind", "string")
    unknown = file.message_type.add(name=_flat(UNKNOWN))
    _add(unknown, 1, "typeMeta", _flat(_TYPE_META))
    _add(unknown, 2, "raw", "bytes")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _describe(into: DescriptorProto, message: str) -> None:
    for field in schema.wire_fields(message):
        if field.map:
            entry = into.nested_type.add(name=field.name[0].upper() + field.name[1:] + "Entry")
            entry.options.map_entry = True
            _add(entry, 1, "key", "string")
            _add(entry, 2, "value", _flat(field.type))
            _add(into, field.number, field.name, f"{into.name}.{entry.name}", repeated=True)
        else:
            _add(into, field.number, field.name, _flat(field.type), repeated=field.repeated)


def _add(into: DescriptorProto, number: int, name: str, kind: str, *, repeated: bool = False) -> None:
    field = into.field.add(name=name, number=number)
    field.label = FieldDescriptorProto.LABEL_REPEATED if repeated else FieldDescriptorProto.LABEL_OPTIONAL
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".{kind}"


def _flat(message: str) -> str:
    return message.replace(".", "_")
