"""The fields of every type that the built-in kinds are made of.

`schema.json` has, for each message, its fields with protobuf number and type; `[]` before a type is a list,
`{}` a map from strings. `merging.toml` adds how lists merge. Both are facts of Kubernetes 1.32.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

QUANTITY = "k8s.io.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "k8s.io.apimachinery.pkg.util.intstr.IntOrString"
TIME = "k8s.io.apimachinery.pkg.apis.meta.v1.Time"
MICRO_TIME = "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime"
FIELDS_V1 = "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1"
RAW_EXTENSION = "k8s.io.apimachinery.pkg.runtime.RawExtension"
# Messages that are no mapping in JSON, or one of any content.
SPECIAL = {QUANTITY, INT_OR_STRING, TIME, MICRO_TIME, FIELDS_V1, RAW_EXTENSION}
# Go embeds these: in JSON their fields stand in the parent. By the name of the field in the parent.
EMBEDDED = {
    "volumeSource",
    "handler",
    "ephemeralContainerCommon",
    "localObjectReference",
    "persistentVolumeSource",
}


@dataclass(frozen=True)
class Field:
    """One field. `type` is a scalar (`string`, `int32`, `int64`, `bool`, `bytes`) or a message's full name.

    `merge_keys`, `set` and `atomic` are server-side apply's; `patch_merge_key` is strategic merge's, and
    `patch_merge_primitive` says that it merges a list of scalars. `inline`: Go embeds it (see EMBEDDED).
    """

    number: int
    name: str
    type: str
    repeated: bool = False
    map: bool = False
    merge_keys: tuple[str, ...] = ()
    set: bool = False
    atomic: bool = False
    patch_merge_key: str | None = None
    patch_merge_primitive: bool = False
    inline: bool = False

    @property
    def message(self) -> str:
        """The message's name if its values are mappings with known fields, else ""."""
        return self.type if "." in self.type and self.type not in SPECIAL else ""


@cache
def fields_of(message: str) -> Mapping[str, Field]:
    """The fields of a message by their name in JSON, embedded ones in their place; {} for an unknown one."""
    found: dict[str, Field] = {}
    for field in wire_fields(message):
        if field.inline:
            found.update(fields_of(field.type))
        else:
            found[field.name] = field
    return found


@cache
def wire_fields(message: str) -> tuple[Field, ...]:
    """The fields of a message as they are on the wire, embedded messages being fields of their own."""
    tables = _tables()
    described = tables.messages.get(message, {})
    merging = tables.merging.get(message, {})
    return tuple(_field(name, *about, merging.get(name, {})) for name, about in described.items())


def known(message: str) -> bool:
    """Whether the table has the message."""
    return message in _tables().messages


def messages() -> Mapping[str, Mapping[str, tuple[int, str]]]:
    """Every message, with number and type of each field."""
    return _tables().messages


@dataclass(frozen=True)
class _Tables:
    messages: dict[str, dict[str, tuple[int, str]]]
    merging: dict[str, dict[str, dict[str, Any]]]


@cache
def _tables() -> _Tables:
    folder = files(__package__)
    raw = json.loads(folder.joinpath("schema.json").read_text(encoding="utf-8"))
    merging = tomllib.loads(folder.joinpath("merging.toml").read_text(encoding="utf-8"))
    packages: dict[str, str] = raw["packages"]

    def full(name: str) -> str:
        package, _, last = name.rpartition(".")
        return f"{packages[package]}.{last}" if package else name

    def typed(text: str) -> str:
        mark = text[:2] if text[:2] in ("[]", "{}") else ""
        return mark + full(text.removeprefix(mark))

    described = {
        full(message): {name: (number, typed(kind)) for name, (number, kind) in fields.items()}
        for message, fields in raw["messages"].items()
    }
    return _Tables(described, {full(message): fields for message, fields in merging.items()})


def _field(name: str, number: int, kind: str, merging: dict[str, Any]) -> Field:
    mark = kind[:2] if kind[:2] in ("[]", "{}") else ""
    patch = merging.get("patch")
    keys = tuple(merging.get("keys", ()))
    bare = kind.removeprefix(mark)
    whole = mark == "[]" and not keys and not merging.get("set")
    return Field(
        number,
        name,
        bare,
        repeated=mark == "[]",
        map=mark == "{}",
        merge_keys=keys,
        set=bool(merging.get("set")),
        atomic=bool(merging.get("atomic")) or whole,
        patch_merge_key=patch or None,
        patch_merge_primitive=patch == "",
        inline=name in EMBEDDED and not mark,
    )
