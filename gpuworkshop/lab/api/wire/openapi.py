"""OpenAPI v3 of what is served: enough for kubectl's apply, diff, explain and validation, and for helm."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.wire import schema
from gpuworkshop.lab.api.wire.descriptions import ELSEWHERE, description
from gpuworkshop.lab.api.wire.schema import Field, fields_of

Document = dict[str, Any]
_META = "k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SCALARS: Mapping[str, Document] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bytes": {"type": "string", "format": "byte"},
    **{name: {"type": "array", "items": {"type": "string"}} for name in schema.EXTRA_VALUES},
}
# Types with a name of their own, which kubectl shows, that are no mappings of known fields.
_NAMED: Mapping[str, Document] = {
    schema.QUANTITY: {"oneOf": [{"type": "string"}, {"type": "number"}]},
    schema.INT_OR_STRING: {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    schema.TIME: {"type": "string", "format": "date-time"},
    schema.MICRO_TIME: {"type": "string", "format": "date-time"},
    schema.FIELDS_V1: {"type": "object"},
    schema.RAW_EXTENSION: {"type": "object"},
}
_PARAMETERS = [
    {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
    for name in ("dryRun", "fieldManager", "fieldValidation")
]
_PATCHES = ("apply-patch+yaml", "json-patch+json", "merge-patch+json", "strategic-merge-patch+json")


def root(kinds: Iterable[Kind], salt: str = "") -> Document:
    """`/openapi/v3`: a document for each group and version; `salt` changes when a CRD's schema does."""
    paths = {}
    for kind in kinds:
        path = f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"
        digest = hashlib.sha256(f"{path}{salt}".encode()).hexdigest().upper()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


def document(
    kinds: Iterable[Kind], group: str, version: str, custom: Mapping[str, Document]
) -> Document | None:
    """The document of a group and version; None for one that is not served.

    `custom` has the openAPIV3Schema of each custom kind, by its plural.
    """
    served = [kind for kind in kinds if (kind.group, kind.version) == (group, version)]
    if not served:
        return None
    schemas: dict[str, Document] = {}
    paths: dict[str, Document] = {}
    for kind in served:
        name = _name(kind)
        if kind.message:
            _add_message(kind.message, schemas)
            schemas[name] = {**schemas[kind.message]}
        else:
            schemas[name] = _custom(custom.get(kind.plural) or {"type": "object"}, schemas)
        schemas[name]["properties"] = {**_type_meta(), **schemas[name].get("properties", {})}
        schemas[name]["x-kubernetes-group-version-kind"] = [_gvk(kind)]
        paths |= _paths(kind, name)
    return {
        "openapi": "3.0.0",
        "info": {"title": "gpuworkshop lab, a simulated Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _name(kind: Kind) -> str:
    """The schema's name: kubectl takes those of the sources, in the reversed domain form."""
    group = kind.group or "core"
    return f"io.gpuworkshop.lab.{group}.{kind.version}.{kind.kind}"


def _gvk(kind: Kind) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _type_meta() -> dict[str, Document]:
    return {name: {"type": "string", "description": description("", name)} for name in ("apiVersion", "kind")}


def _custom(found: Document, schemas: dict[str, Document]) -> Document:
    _add_message(_META, schemas)
    described = {"type": "object", "description": ELSEWHERE, **found}
    properties = dict(described.get("properties") or {})
    properties["metadata"] = {"allOf": [_reference(_META)], "description": description("", "metadata")}
    return {**described, "properties": properties}


def _add_message(message: str, schemas: dict[str, Document]) -> None:
    if message in schemas:
        return
    if message in _NAMED:
        schemas[message] = {**_NAMED[message], "description": description(message)}
        return
    fields = fields_of(message).values()
    described: Document = {"type": "object", "description": description(message)}
    if required := [field.name for field in fields if field.required]:
        described["required"] = required
    # There before its properties are, since a type may hold itself.
    schemas[message] = described
    described["properties"] = {field.name: _property(message, field, schemas) for field in fields}


def _property(message: str, field: Field, schemas: dict[str, Document]) -> Document:
    if field.type in _SCALARS:
        value = dict(_SCALARS[field.type])
    else:
        _add_message(field.type, schemas)
        # Beside a $ref nothing else may stand, so that one with a description is wrapped.
        single = not (field.repeated or field.map)
        value = {"allOf": [_reference(field.type)]} if single else _reference(field.type)
    if field.map:
        value = {"type": "object", "additionalProperties": value}
    elif field.repeated:
        value = {"type": "array", "items": value, **_list_type(field)}
    if field.atomic and not field.repeated:
        value["x-kubernetes-map-type"] = "atomic"
    return {**value, **_patch_strategy(field), "description": description(message, field.name)}


def _patch_strategy(field: Field) -> Document:
    found: Document = {}
    merges = ["merge"] if field.patch_merge_key or field.patch_merge_primitive else []
    if strategies := [*merges, *(["retainKeys"] if field.patch_retain_keys else ())]:
        found["x-kubernetes-patch-strategy"] = ",".join(strategies)
    if field.patch_merge_key:
        found["x-kubernetes-patch-merge-key"] = field.patch_merge_key
    return found


def _list_type(field: Field) -> Document:
    if field.merge_keys:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(field.merge_keys)}
    return {"x-kubernetes-list-type": "set" if field.set else "atomic"}


def _reference(message: str) -> Document:
    return {"$ref": f"#/components/schemas/{message}"}


def _paths(kind: Kind, name: str) -> dict[str, Document]:
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    scope = f"{base}/namespaces/{{namespace}}" if kind.namespaced else base
    collection = f"{scope}/{kind.plural}"
    return {
        collection: {
            "get": _operation(kind, name, "list"),
            "post": _operation(kind, name, "post", body=True),
        },
        f"{collection}/{{name}}": {
            "get": _operation(kind, name, "get"),
            "put": _operation(kind, name, "put", body=True),
            "patch": _operation(kind, name, "patch", body=True),
            "delete": _operation(kind, name, "delete"),
        },
    }


def _operation(kind: Kind, name: str, action: str, body: bool = False) -> Document:
    content = {"application/json": {"schema": _reference(name)}}
    operation: Document = {
        "operationId": f"{action}{kind.group.replace('.', '')}{kind.version}{kind.kind}",
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(kind),
    }
    if body:
        operation["parameters"] = _PARAMETERS
        # By this list kubectl learns which patches a kind takes; a custom one takes no strategic merge.
        patches = _PATCHES if kind.message else _PATCHES[:-1]
        forms = [f"application/{form}" for form in patches] if action == "patch" else list(content)
        operation["requestBody"] = {"content": {form: {"schema": _reference(name)} for form in forms}}
    return operation
