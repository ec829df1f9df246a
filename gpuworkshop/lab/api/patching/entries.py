"""The entries of managedFields: who owns which fields, since when, and by which kind of operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuworkshop.lab.api.objects import Object, seconds_of
from gpuworkshop.lab.api.patching.fieldsv1 import Fields, difference, is_valid, union

APPLY, UPDATE = "Apply", "Update"
ANCIENT = "ancient-changes"  # who holds what the oldest of too many updaters held
MOST_UPDATERS = 10


@dataclass(frozen=True)
class Entry:
    """What one manager owns by one operation on one (sub)resource."""

    manager: str
    operation: str
    api_version: str
    fields: Fields
    time: str = ""
    subresource: str = ""

    def is_same_manager(self, other: Entry) -> bool:
        """Whether both are one entry. An applier has only one, whatever the version that it applies."""
        ours = (self.manager, self.operation, self.subresource)
        return ours == (other.manager, other.operation, other.subresource) and (
            self.operation == APPLY or self.api_version == other.api_version
        )

    def without(self, *lost: Fields) -> Entry:
        """The entry when others have taken fields, or they are gone."""
        left = self.fields
        for fields in lost:
            left = difference(left, fields)
        return self if left is self.fields else replace(self, fields=left)

    def to_json(self) -> Object:
        """The entry as managedFields has it."""
        entry = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        if self.time:
            entry["time"] = self.time
        described: Object = {**entry, "fieldsType": "FieldsV1", "fieldsV1": self.fields}
        return {**described, "subresource": self.subresource} if self.subresource else described


def entries_of(obj: Object) -> list[Entry]:
    """The entries of an object that has been stored."""
    return [_entry(found) for found in (obj.get("metadata") or {}).get("managedFields") or []]


def entries_sent(live: Object, new: Object) -> list[Entry]:
    """The entries to go on from when a client has sent `new`: its own if they make sense, else those of
    `live`.

    A client may so rewrite the record, as kubectl does on the way from client-side to server-side apply; and
    it clears it by an empty list or an empty entry.
    """
    sent = new["metadata"].get("managedFields")
    if sent is None or sent == (live.get("metadata") or {}).get("managedFields"):
        return entries_of(live)
    if sent in ([], [{}]):
        return []
    if not isinstance(sent, list) or not all(_is_entry(found) for found in sent):
        return entries_of(live)
    return [_entry(found) for found in sent]


def with_entries(obj: Object, entries: Sequence[Entry]) -> Object:
    """The object with these entries for its managedFields, in the order of the API server."""
    metadata = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    described = [entry.to_json() for entry in sorted(entries, key=_rank) if entry.fields]
    if described:
        metadata["managedFields"] = described
    return {**obj, "metadata": metadata}


def capped(entries: Sequence[Entry]) -> list[Entry]:
    """The entries with at most so many updaters: the oldest share one entry for each version."""
    updaters = sorted((e for e in entries if e.operation == UPDATE), key=_rank)
    too_many = len(updaters) - MOST_UPDATERS
    if too_many <= 0:
        return list(entries)
    oldest = updaters[: too_many + 1]
    ancient: dict[str, Entry] = {}
    for entry in oldest:
        before = ancient.get(entry.api_version)
        fields = union(before.fields, entry.fields) if before else entry.fields
        ancient[entry.api_version] = Entry(ANCIENT, UPDATE, entry.api_version, fields, entry.time)
    return [*(e for e in entries if not any(e is old for old in oldest)), *ancient.values()]


def _entry(found: Mapping[str, Any]) -> Entry:
    return Entry(
        found.get("manager", ""),
        found["operation"],
        found.get("apiVersion", ""),
        found.get("fieldsV1") or {},
        found.get("time") or "",
        found.get("subresource", ""),
    )


def _is_entry(found: object) -> bool:
    if not isinstance(found, dict) or found.get("operation") not in (APPLY, UPDATE):
        return False
    texts = [found.get(name) or "" for name in ("manager", "apiVersion", "time", "subresource")]
    if not all(isinstance(text, str) for text in texts) or not _is_time(texts[2]):
        return False
    return found.get("fieldsType", "FieldsV1") == "FieldsV1" and is_valid(found.get("fieldsV1") or {})


def _is_time(text: str) -> bool:
    try:
        return not text or seconds_of(text) >= 0
    except ValueError:
        return False


def _rank(entry: Entry) -> tuple[str, ...]:
    return entry.operation, entry.time, entry.manager, entry.api_version, entry.subresource
