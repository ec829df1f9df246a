"""Server-side apply: a client says which fields it wants how, and so owns them.

What it applied before and no longer does goes, unless someone else owns it too. What someone else owns and
would be changed is a conflict, unless it is forced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuworkshop.lab.api.objects import Object, timestamp
from gpuworkshop.lab.api.patching import last_applied
from gpuworkshop.lab.api.patching.comparing import all_fields_in, fields_in
from gpuworkshop.lab.api.patching.conflicts import refused
from gpuworkshop.lab.api.patching.entries import APPLY, UPDATE, Entry, entries_of, with_entries
from gpuworkshop.lab.api.patching.fieldsv1 import Fields, intersection, union
from gpuworkshop.lab.api.patching.managed import UNOWNED_METADATA, changes, owned
from gpuworkshop.lab.api.patching.merging import fault_in, merged, pruned
from gpuworkshop.lab.api.patching.shapes import Shape, shape_of
from gpuworkshop.lab.api.problems import ApiError, bad_request

BEFORE = "before-first-apply"  # who owns what was there, where nobody kept record
# Of the metadata that nobody owns, what an applied object may say: which object it means, and which version.
_MEANT = ("name", "namespace", "uid", "resourceVersion")


@dataclass(frozen=True)
class _Applied:
    """What is applied: its fields are the manager's own; `entry` has them, at this time."""

    config: Object
    entry: Entry
    shape: Shape


def apply(
    live: Object | None,
    applied: Object,
    manager: str,
    force: bool,
    message: str,
    now: float,
    schema: Mapping[str, Any] | None = None,
    subresource: str = "",
) -> Object:
    """The object with what is applied, and its managedFields; `live` itself where that changes nothing.

    `live` is None if there is none yet. `message` names the type, `schema` is a custom kind's. Raises
    ApiError: 409 for a conflict without `force`.
    """
    wanted = _read(applied, manager, now, shape_of(message, schema), subresource)
    if live is None:
        return with_entries(merged({}, wanted.config, wanted.shape), [wanted.entry])
    entries = entries_of(live) or [_untracked(live, wanted.shape)]
    last = next((entry for entry in entries if entry.is_same_manager(wanted.entry)), None)
    others = [entry for entry in entries if entry is not last]
    new = _applied(live, wanted, last, others)
    changed, removed = changes(live, new, wanted.shape, subresource)
    _check_conflicts(live, wanted, force, others, changed)
    after = [entry.without(changed, removed) for entry in others]
    return _recorded(live, new, wanted, last, after, is_noop=not changed and not removed)


def _read(applied: Object, manager: str, now: float, shape: Shape, subresource: str) -> _Applied:
    for name in ("apiVersion", "kind"):
        if not applied.get(name):
            raise bad_request(f"Object '{name}' is missing in the applied configuration")
    metadata = applied.get("metadata") or {}
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    if fault := fault_in(applied, shape):
        about = "/".join(part for part in (metadata.get("namespace"), metadata.get("name")) if part)
        what = f"{about}; {applied.get('apiVersion')}, Kind={applied.get('kind')}"
        raise ApiError(500, "", f"failed to create typed patch object ({what}): {fault}")
    unmeant = set(UNOWNED_METADATA) - set(_MEANT)
    config = {**applied, "metadata": {key: value for key, value in metadata.items() if key not in unmeant}}
    own = owned(fields_in(applied, shape), subresource)
    entry = Entry(manager, APPLY, applied["apiVersion"], own, timestamp(now), subresource)
    return _Applied(config, entry, shape)


def _untracked(live: Object, shape: Shape) -> Entry:
    return Entry(BEFORE, UPDATE, live["apiVersion"], owned(all_fields_in(live, shape), ""))


def _applied(live: Object, wanted: _Applied, last: Entry | None, others: Sequence[Entry]) -> Object:
    new: Object = merged(live, wanted.config, wanted.shape)
    if last is not None:
        kept = union(wanted.entry.fields, {"f:metadata": {}})  # an object always has metadata
        for entry in others:
            kept = union(kept, entry.fields)
        new = pruned(new, last.fields, kept, wanted.shape)
    return new


def _check_conflicts(
    live: Object, wanted: _Applied, force: bool, others: Sequence[Entry], changed: Fields
) -> None:
    if force:
        return
    found = [
        replace(entry, fields=shared) for entry in others if (shared := intersection(entry.fields, changed))
    ]
    if found and wanted.entry.manager == last_applied.KUBECTL:
        allowed = last_applied.unchanged_fields(live, wanted.shape)
        found = [entry for entry in (entry.without(allowed) for entry in found) if entry.fields]
    if found:
        raise refused(found)


def _recorded(
    live: Object, new: Object, wanted: _Applied, last: Entry | None, others: Sequence[Entry], is_noop: bool
) -> Object:
    """The object with its managers; who applies the same again is not told as having done so now."""
    entry = wanted.entry
    if is_noop and last is not None and last.fields == entry.fields and last.api_version == entry.api_version:
        entry = last
    told = last_applied.synchronised(live, new, wanted.config, entry.manager)
    answer = with_entries(told, [*others, entry])
    return live if answer == live else answer
