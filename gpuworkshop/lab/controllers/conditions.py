"""Conditions and statuses, written only when they say something new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object, copy_of, name_of, namespace_of, timestamp
from gpuworkshop.lab.api.registry import Registry

Conditions = list[dict[str, Any]]


def with_condition(
    conditions: Sequence[Mapping[str, Any]],
    kind: str,
    status: str,
    reason: str,
    message: str,
    now: float,
    **more: Any,
) -> Conditions:
    """The conditions with this one set; its transition is as old as its status, and not as its words."""
    new: dict[str, Any] = {"type": kind, "status": status, "reason": reason, "message": message, **more}
    new["lastTransitionTime"] = timestamp(now)
    kept: Conditions = []
    found = False
    for old in conditions:
        if old.get("type") != kind:
            kept.append(dict(old))
            continue
        found = True
        if old.get("status") == status:
            new["lastTransitionTime"] = old.get("lastTransitionTime") or new["lastTransitionTime"]
        kept.append(new)
    return kept if found else [*kept, new]


def without_condition(conditions: Sequence[Mapping[str, Any]], kind: str) -> Conditions:
    """The conditions without those of one type."""
    return [dict(old) for old in conditions if old.get("type") != kind]


def conditions_of(obj: Object) -> Conditions:
    """A copy of an object's conditions."""
    return [dict(found) for found in (obj.get("status") or {}).get("conditions") or ()]


def counted(**counts: int) -> dict[str, int]:
    """The counts that are not zero: the API leaves zeros out of a status."""
    return {name: count for name, count in counts.items() if count}


def write_status(registry: Registry, kind: Kind, obj: Object, status: dict[str, Any]) -> Object | None:
    """Replace an object's status; None if the object is gone."""
    if obj.get("status") == status:
        return obj

    def change(live: Object) -> None:
        live["status"] = copy_of(status)

    return registry.modify(kind, namespace_of(obj), name_of(obj), change, "status")
