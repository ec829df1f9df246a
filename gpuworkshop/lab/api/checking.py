"""Whether the fields of a body are those of its kind: refused, warned of, or ignored, as the client asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aiohttp import web

from gpuworkshop.lab.api import custom, definition_types, problems
from gpuworkshop.lab.api.kinds import CRD, Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.wire import strict, structural

_METADATA = "k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta"
MOST_TOLD = 100


def checked(
    registry: Registry, kind: Kind, obj: Object, request: web.Request, doubts: Sequence[str]
) -> tuple[Object, list[str]]:
    """The object without unknown fields, and warnings. `doubts` are those of decoding, such as duplicates.

    Raises ApiError for another kind or version than the path's, for fields of a wrong type, and with
    `fieldValidation=Strict` for unknown or duplicate fields.
    """
    _check_kind(kind, obj)
    if kind.message:
        strict.check_types(kind, obj)
        unknown = strict.unknown_fields(kind.message, obj)
        obj = strict.pruned(kind.message, obj)
    else:
        if kind is CRD:
            definition_types.check(obj)
        obj, unknown = _with_metadata(kind, obj)
        schema = custom.schema(registry, kind)
        unknown += structural.unknown_fields(obj, schema) if schema else []
    found = [*doubts, *unknown]
    mode = request.query.get("fieldValidation") or "Warn"
    if mode not in ("Strict", "Warn", "Ignore"):
        raise problems.bad_request(
            f'fieldValidation: Unsupported value: "{mode}": supported values: "Ignore", "Strict", "Warn"'
        )
    if found and mode == "Strict":
        raise problems.bad_request(
            f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f"strict decoding error: {', '.join(found[:MOST_TOLD])}"
        )
    return obj, found if mode == "Warn" else []


def _with_metadata(kind: Kind, obj: Object) -> tuple[Object, list[str]]:
    """The object with metadata as every kind has it, and the fields that were too many there."""
    metadata = obj.get("metadata") or {}
    strict.check_types(replace(kind, message=_METADATA), metadata)
    unknown = strict.unknown_fields(_METADATA, metadata)
    named = [words.replace('"', '"metadata.', 1) for words in unknown]
    return {**obj, "metadata": strict.pruned(_METADATA, metadata)}, named


def _check_kind(kind: Kind, obj: Object) -> None:
    version, name = obj.get("apiVersion") or kind.api_version, obj.get("kind") or kind.kind
    if version != kind.api_version:
        raise problems.bad_request(
            f"the API version in the data ({version}) does not match the expected API version "
            f"({kind.api_version})"
        )
    if name != kind.kind:
        raise problems.bad_request(
            f'{name} in version "{kind.version}" cannot be handled as a {kind.kind}: no kind "{name}" is '
            f'registered for version "{kind.api_version}"'
        )
    if not isinstance(obj.get("metadata") or {}, dict):
        raise problems.bad_request("json: cannot unmarshal metadata: it is no mapping")
