"""JSON merge patch (RFC 7386). kubectl sends it for label, annotate, scale, and every custom resource."""

from __future__ import annotations

from typing import Any

from gpuworkshop.lab.api.objects import Object


def merge_patch(base: Object, patch: Object) -> Object:
    """`base` after the patch: null deletes, objects merge, and anything else replaces. Neither is changed."""
    merged: Object = _merged(base, patch)
    return merged


def _merged(base: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


def without_nulls(value: Any) -> Any:
    """A copy in which no field is null; a null in a list stays."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value]
    return value
