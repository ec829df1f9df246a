"""The form of an answer: the object itself, a Table for people, or only its metadata."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aiohttp import web

from gpuworkshop.lab.api import custom, problems, tables
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object, encoded
from gpuworkshop.lab.api.registry import Registry

# A client takes only so many headers, and only so long ones.
MOST_WARNINGS, LONGEST_WARNING, LONGEST_WARNINGS = 50, 256, 4096


class Form:
    """What the client's Accept header asks for."""

    def __init__(self, request: web.Request) -> None:
        self.asked = _asked(request.headers.get("Accept", ""))
        self.include_object = request.query.get("includeObject", "Metadata")

    def objects(
        self, registry: Registry, kind: Kind, objects: Sequence[Object], list_meta: dict[str, Any]
    ) -> bytes:
        """A list."""
        if self.asked == "Table":
            return encoded(self.table(registry, kind, objects, list_meta))
        if self.asked == "PartialObjectMetadataList":
            return encoded(tables.partial_list(objects, list_meta))
        api_version = kind.api_version
        items = [as_version(obj, api_version) for obj in objects]
        return encoded(
            {"kind": f"{kind.kind}List", "apiVersion": api_version, "metadata": list_meta, "items": items}
        )

    def object(self, registry: Registry, kind: Kind, obj: Object) -> bytes:
        """One object."""
        if self.asked == "Table":
            version = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            return encoded(self.table(registry, kind, [obj], version))
        if self.asked == "PartialObjectMetadata":
            return encoded(tables.partial(obj))
        return encoded(as_version(obj, kind.api_version))

    def table(
        self, registry: Registry, kind: Kind, objects: Sequence[Object], list_meta: dict[str, Any]
    ) -> Object:
        """The Table of `objects`."""
        columns = custom.printer_columns(registry, kind)
        return tables.table(
            kind,
            objects,
            registry.now(),
            include_object=self.include_object,
            list_meta=list_meta,
            columns_of_crd=columns,
        )


def as_version(obj: Object, api_version: str) -> Object:
    """The object under the version that was asked for; the lab's CRDs do not convert between versions."""
    return obj if obj["apiVersion"] == api_version else {**obj, "apiVersion": api_version}


def json_response(body: bytes | Object, status: int = 200, warnings: Sequence[str] = ()) -> web.Response:
    """A JSON answer, with the warnings that kubectl shows."""
    response = web.Response(
        body=body if isinstance(body, bytes) else encoded(body),
        status=status,
        content_type="application/json",
    )
    for text in _fitting(warnings):
        response.headers.add("Warning", f'299 - "{text}"')
    return response


def _fitting(warnings: Sequence[str]) -> Iterator[str]:
    """The warnings as headers can carry them: without control characters, and not endlessly many."""
    left = LONGEST_WARNINGS
    for warning in warnings[:MOST_WARNINGS]:
        printable = "".join(
            letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in warning
        )
        text = printable[:LONGEST_WARNING].replace("\\", "\\\\").replace('"', '\\"')
        if (left := left - len(text)) < 0:
            return
        yield text


def error_response(error: problems.ApiError) -> web.Response:
    """The Status of a refusal."""
    return json_response(error.status(), error.code)


def _asked(accept: str) -> str:
    """`Table`, `PartialObjectMetadata`, `PartialObjectMetadataList`, or "" for the object itself.

    The first that the client names and the lab can give; protobuf it cannot, and every client takes JSON.
    """
    for part in accept.split(","):
        kind, *parameters = (word.strip() for word in part.split(";"))
        if kind not in ("application/json", "*/*", "application/*"):
            continue
        wanted = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        if wanted.get("g") == "meta.k8s.io" and wanted.get("v") == "v1":
            return wanted.get("as", "")
        return ""
    return ""
