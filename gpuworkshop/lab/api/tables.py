"""The `Table` that an API server makes for people, and objects reduced to their metadata.

kubectl lays the cells out, and computes nothing itself: what stands in a cell is the server's word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuworkshop.lab.api import custom_columns
from gpuworkshop.lab.api.columns import COLUMNS, UNKNOWN, Column
from gpuworkshop.lab.api.kinds import POD, Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import bad_request

API_VERSION = "meta.k8s.io/v1"
INCLUDED = ("None", "Metadata", "Object")
# What a row says of a pod that has ended, so that a client may leave it out.
ENDED = {
    "Succeeded": "The pod has completed successfully.",
    "Failed": "The pod failed.",
}


def table(
    kind: Kind,
    objects: Iterable[Object],
    now: float,
    *,
    include_object: str = "Metadata",
    list_meta: Mapping[str, Any] | None = None,
    columns_of_crd: Sequence[Mapping[str, Any]] | None = None,
) -> Object:
    """The Table of objects of a kind at `now`, Unix seconds: of a list, or of a watch event's one object.

    `include_object` says what goes with each row: None, Metadata or Object. `columns_of_crd` are the
    additionalPrinterColumns of a custom kind.
    """
    if include_object not in INCLUDED:
        raise bad_request(f'unrecognized includeObject value: "{include_object}"')
    columns = _columns(kind, columns_of_crd)
    return {
        "kind": "Table",
        "apiVersion": API_VERSION,
        "metadata": dict(list_meta or {}),
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [_row(kind, columns, obj, now, include_object) for obj in objects],
    }


def _columns(kind: Kind, of_crd: Sequence[Mapping[str, Any]] | None) -> Sequence[Column]:
    if of_crd is not None:
        return custom_columns.columns(of_crd)
    return COLUMNS.get(kind.resource, UNKNOWN)


def _row(
    kind: Kind, columns: Sequence[Column], obj: Object, now: float, include_object: str
) -> dict[str, Any]:
    row: dict[str, Any] = {"cells": [column.cell(obj, now) for column in columns]}
    if kind is POD and (message := ENDED.get(phase := (obj.get("status") or {}).get("phase", ""))):
        row["conditions"] = [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
    row["object"] = (
        obj if include_object == "Object" else partial(obj) if include_object == "Metadata" else None
    )
    return row


def partial(obj: Object) -> Object:
    """Its metadata alone, as PartialObjectMetadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": API_VERSION, "metadata": obj["metadata"]}


def partial_list(objects: Iterable[Object], list_meta: Mapping[str, Any]) -> Object:
    """The metadata of a list's objects."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": API_VERSION,
        "metadata": dict(list_meta),
        "items": [partial(obj) for obj in objects],
    }
