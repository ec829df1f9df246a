"""The columns of a custom kind: its name, then what its CRD says; its age if the CRD says nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuworkshop.lab.api import jsonpath
from gpuworkshop.lab.api.ages import age
from gpuworkshop.lab.api.columns import NAME, Column
from gpuworkshop.lab.api.objects import Object

DEFAULT = ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)


def columns(of_crd: Sequence[Mapping[str, Any]]) -> list[Column]:
    """The columns for the additionalPrinterColumns of one version of a CRD."""
    return [NAME, *map(_column, of_crd or DEFAULT)]


def _column(printed: Mapping[str, Any]) -> Column:
    kind, path = printed.get("type", "string"), printed["jsonPath"]

    def cell(obj: Object, now: float) -> Any:
        return _cell(kind, jsonpath.find(obj, path), now)

    return Column(
        printed["name"],
        cell,
        kind,
        printed.get("format", ""),
        bool(printed.get("priority")),
        printed.get("description", ""),
    )


def _cell(kind: str, found: Sequence[Any], now: float) -> Any:
    """A cell of the column's type; null for a value of another type."""
    if not found or found[0] is None:
        return None
    value = found[0]
    match kind:
        case "string":
            return jsonpath.text_of(found)
        case "date":
            return age(value, now) if isinstance(value, str) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "integer" | "number":
            if isinstance(value, bool) or not isinstance(value, int | float):
                return None
            return int(value) if kind == "integer" else value
    return None
