"""Kubernetes objects as plain dicts, in the JSON form of the API, and what is asked of them everywhere.

An object that the store hands out is shared, and read only by convention: `copy_of` it before a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

Object = dict[str, Any]


def copy_of(obj: Object) -> Object:
    """A deep copy."""
    copied: Object = msgspec.json.decode(encoded(obj))
    return copied


def encoded(value: Any) -> bytes:
    """The JSON of an object, or of a part of one."""
    return msgspec.json.encode(value)


def meta(obj: Object) -> dict[str, Any]:
    """The object's metadata, to read or to change."""
    found: dict[str, Any] = obj.setdefault("metadata", {})
    return found


def name_of(obj: Object) -> str:
    """Its name, "" where it has none yet."""
    return str(meta(obj).get("name") or "")


def namespace_of(obj: Object) -> str:
    """Its namespace, "" for an object of the whole cluster."""
    return str(meta(obj).get("namespace") or "")


def uid_of(obj: Object) -> str:
    """Its UID."""
    return str(meta(obj).get("uid") or "")


def labels_of(obj: Object) -> Mapping[str, str]:
    """Its labels."""
    return meta(obj).get("labels") or {}


def annotations_of(obj: Object) -> Mapping[str, str]:
    """Its annotations."""
    return meta(obj).get("annotations") or {}


def is_deleted(obj: Object) -> bool:
    """Whether its deletion has begun, and waits for finalizers or a grace period."""
    return bool(meta(obj).get("deletionTimestamp"))


def owner_reference(owner: Object, controller: bool = True) -> dict[str, Any]:
    """The entry of `ownerReferences` that makes `owner` the owner."""
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
    }
    return {**reference, "controller": True, "blockOwnerDeletion": True} if controller else reference


def controller_of(obj: Object) -> Mapping[str, Any] | None:
    """The owner reference of the object's controller, if it has one."""
    return next((ref for ref in meta(obj).get("ownerReferences") or [] if ref.get("controller")), None)


def controlled_by(obj: Object, owner: Object) -> bool:
    """Whether `owner` is the object's controller."""
    reference = controller_of(obj)
    return reference is not None and reference.get("uid") == uid_of(owner)


def condition(obj: Object, kind: str) -> Mapping[str, Any] | None:
    """The condition of that type in the object's status."""
    conditions = (obj.get("status") or {}).get("conditions") or []
    return next((found for found in conditions if found.get("type") == kind), None)


def timestamp(at: float) -> str:
    """Unix seconds as the API writes them: RFC 3339, whole seconds, UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str) -> float:
    """Unix seconds of an RFC 3339 text. Raises ValueError."""
    return datetime.fromisoformat(text).timestamp()
