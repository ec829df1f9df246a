"""The types of the fields of a CustomResourceDefinition, whose message is in none of the tables of `wire`.

A schema whose parts have other types would fail later, at the first object of the new kind.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.kinds import CRD
from gpuworkshop.lab.api.objects import Object

DASHED = "x-kubernetes-{}".format


class _Schema(msgspec.Struct, rename="camel"):
    """JSONSchemaProps, as far as the lab acts on it."""

    type: str | None = None
    format: str | None = None
    pattern: str | None = None
    nullable: bool | None = None
    minimum: float | None = None
    maximum: float | None = None
    multiple_of: float | None = None
    exclusive_minimum: bool | None = None
    exclusive_maximum: bool | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    min_properties: int | None = None
    max_properties: int | None = None
    unique_items: bool | None = None
    required: list[str] | None = None
    enum: list[Any] | None = None
    items: _Schema | None = None
    properties: dict[str, _Schema] | None = None
    additional_properties: _Schema | bool | None = None
    all_of: list[_Schema] | None = None
    any_of: list[_Schema] | None = None
    one_of: list[_Schema] | None = None
    not_: _Schema | None = msgspec.field(default=None, name="not")
    description: str | None = None
    preserved: bool | None = msgspec.field(default=None, name=DASHED("preserve-unknown-fields"))
    embedded: bool | None = msgspec.field(default=None, name=DASHED("embedded-resource"))
    int_or_string: bool | None = msgspec.field(default=None, name=DASHED("int-or-string"))
    list_type: str | None = msgspec.field(default=None, name=DASHED("list-type"))
    list_keys: list[str] | None = msgspec.field(default=None, name=DASHED("list-map-keys"))
    map_type: str | None = msgspec.field(default=None, name=DASHED("map-type"))


class _Validation(msgspec.Struct, rename="camel"):
    schema: _Schema | None = msgspec.field(default=None, name="openAPIV3Schema")


class _Column(msgspec.Struct, rename="camel"):
    name: str | None = None
    type: str | None = None
    json_path: str | None = None
    format: str | None = None
    description: str | None = None
    priority: int | None = None


class _Version(msgspec.Struct, rename="camel"):
    name: str | None = None
    served: bool | None = None
    storage: bool | None = None
    deprecated: bool | None = None
    schema: _Validation | None = None
    subresources: dict[str, dict[str, Any] | None] | None = None
    additional_printer_columns: list[_Column] | None = None


class _Names(msgspec.Struct, rename="camel"):
    plural: str | None = None
    singular: str | None = None
    kind: str | None = None
    list_kind: str | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    group: str | None = None
    scope: str | None = None
    names: _Names | None = None
    versions: list[_Version] | None = None


class _Definition(msgspec.Struct):
    spec: _Spec | None = None
    status: dict[str, Any] | None = None


def check(definition: Object) -> None:
    """Raise ApiError 400 for a field of another type."""
    try:
        msgspec.convert(definition, _Definition)
    except msgspec.ValidationError as error:
        message = f'{CRD.kind} in version "{CRD.version}" cannot be handled as a {CRD.kind}: {error}'
        raise problems.bad_request(message) from error
