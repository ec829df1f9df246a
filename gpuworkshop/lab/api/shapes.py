"""Reading JSON whose shape nobody has vouched for: what is missing, null or of another type reads as empty.

Defaults and validation use these, so that neither ever fails on an odd object; another type is reported
elsewhere, by the check against the schema.
"""

from __future__ import annotations

from typing import Any

Mapping = dict[str, Any]


def mapping(obj: object, *keys: str) -> Mapping:
    """The mapping at the end of `keys`; an empty one, which is not part of `obj`, if there is none."""
    for key in keys:
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj if isinstance(obj, dict) else {}


def mappings(obj: Mapping, key: str) -> list[Mapping]:
    """The list at `key`, its indexes kept: an entry that is no mapping is an empty one."""
    return [entry if isinstance(entry, dict) else {} for entry in sequence(obj, key)]


def sequence(obj: Mapping, key: str) -> list[Any]:
    """The list at `key`."""
    found = obj.get(key)
    return found if isinstance(found, list) else []


def texts(obj: Mapping, key: str) -> list[str]:
    """The texts in the list at `key`, its indexes kept."""
    return [entry if isinstance(entry, str) else "" for entry in sequence(obj, key)]


def text(obj: Mapping, key: str) -> str:
    """The text at `key`."""
    found = obj.get(key)
    return found if isinstance(found, str) else ""


def number(obj: Mapping, key: str, default: int = 0) -> int:
    """The whole number at `key`; `default` if there is none."""
    found = obj.get(key)
    return found if type(found) is int else default


def pairs(obj: object, *keys: str) -> dict[str, str]:
    """The texts in the mapping at the end of `keys`, such as labels."""
    return {key: value for key, value in mapping(obj, *keys).items() if isinstance(value, str)}


def struct(obj: Mapping, key: str) -> Mapping:
    """The mapping at `key`, put there if there is none, as a struct in Go is always there."""
    found = obj.get(key)
    if found is None:
        found = obj[key] = {}
    return found if isinstance(found, dict) else {}


def fill(obj: Mapping, **values: object) -> None:
    """Set each field that is missing, null or an empty text."""
    for key, value in values.items():
        if obj.get(key) in (None, ""):
            obj[key] = value
