"""Who owns which field of an object: what every create, update and patch does to its managedFields.

A write takes the fields that it changes, from whoever had them; it gives up those that it removes.
Server-side apply, which can be refused instead, is in `server_side`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpuworkshop.lab.api.objects import Object, timestamp
from gpuworkshop.lab.api.patching.comparing import compare
from gpuworkshop.lab.api.patching.entries import (
    UPDATE,
    Entry,
    capped,
    entries_of,
    entries_sent,
    with_entries,
)
from gpuworkshop.lab.api.patching.fieldsv1 import MEMBER, Fields, field, union
from gpuworkshop.lab.api.patching.shapes import Shape, shape_of

# What the API server itself keeps, which nobody owns.
_UNOWNED = {field("apiVersion"), field("kind")}
UNOWNED_METADATA = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
_UNOWNED_METADATA = {MEMBER, *map(field, UNOWNED_METADATA)}
_WRITTEN_ELSEWHERE = {"": field("status"), "status": field("spec")}  # by the subresource of the write


def track_update(
    live: Object,
    new: Object,
    manager: str,
    subresource: str,
    now: float,
    message: str,
    schema: Mapping[str, Any] | None = None,
) -> Object:
    """`new` with its managedFields after `manager` has written it over `live`, {} if there was none.

    `message` names the type, `schema` is a custom kind's. Neither object is changed.
    """
    entries = entries_of(live) if subresource else entries_sent(live, new)
    if live and not entries:
        return with_entries(new, [])  # not tracked, or cleared: only server-side apply begins it again
    changed, removed = changes(live, new, shape_of(message, schema), subresource)
    if not changed and not removed:
        return with_entries(new, entries)
    write = Entry(manager, UPDATE, new["apiVersion"], changed, timestamp(now), subresource)
    return with_entries(new, capped(_after(entries, write, removed)))


def changes(live: Object, new: Object, shape: Shape, subresource: str) -> tuple[Fields, Fields]:
    """The fields that differ and that someone may own: those changed or added, and those removed."""
    changed, removed = compare(live, new, shape)
    return owned(changed, subresource), owned(removed, subresource)


def owned(fields: Fields, subresource: str) -> Fields:
    """The fields that someone may own who writes to that subresource."""
    unowned = {*_UNOWNED, _WRITTEN_ELSEWHERE.get(subresource)}
    kept = {element: inner for element, inner in fields.items() if element not in unowned}
    metadata = kept.pop("f:metadata", {})
    if inside := {element: inner for element, inner in metadata.items() if element not in _UNOWNED_METADATA}:
        kept["f:metadata"] = inside
    return kept


def _after(entries: list[Entry], write: Entry, removed: Fields) -> list[Entry]:
    """The entries after a write: its own has what it changed besides what it had."""
    after = []
    for entry in entries:
        if entry.is_same_manager(write):
            write = replace(write, fields=union(entry.without(removed).fields, write.fields))
        else:
            after.append(entry.without(write.fields, removed))
    return [entry for entry in (*after, write) if entry.fields]
