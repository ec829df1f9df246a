"""The fields of every type that the built-in kinds are made of.

`schema.json` has, for each message, its fields with protobuf number (0: in JSON only) and type. Before a
type, `[]` makes a list of it, `{}` a map from strings; after it, `!` means required, and `?` that Go has a
pointer there, so that 0 is something else than nothing. `merging.toml` adds how lists merge. Both are facts
of Kubernetes 1.32.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
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
# Lists of strings in a map; protobuf has a message around each list, JSON has not.
EXTRA_VALUES = {f"k8s.io.api.{group}.v1.ExtraValue" for group in ("authentication", "authorization")}
# Messages that are no mapping in JSON, or one of any content.
SPECIAL = {QUANTITY, INT_OR_STRING, TIME, MICRO_TIME, FIELDS_V1, RAW_EXTENSION, *EXTRA_VALUES}
# Go embeds these: in JSON their fields stand in the parent. By the name of the field in the parent.
EMBEDDED = {
    "ephemeralContainerCommon",
    "handler",
    "ingressRuleValue",
    "localObjectReference",
    "persistentVolumeSource",
    "volumeSource",
}


@dataclass(frozen=True)
class Field:
    """One field. `type` is a scalar (`string`, `int32`, `int64`, `bool`, `bytes`) or a message's full name.

    `merge_keys`, `set` and `atomic` are server-side apply's; `patch_merge_key` is strategic merge's,
    `patch_merge_primitive` says that it merges a list of scalars, `patch_retain_keys` that a client lists the
    keys that stay. `inline`: Go embeds it (see EMBEDDED). `pointer`: a zero is a value too.
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
    patch_retain_keys: bool = False
    inline: bool = False
    pointer: bool = False
    required: bool = False

    @property
    def message(self) -> str:
        """The message's name if its values are mappings with known fields, else ""."""
        return self.type if "." in self.type and self.type not in SPECIAL else ""


@cache
def fields_of(message: str) -> Mapping[str, Field]:
    """The fields of a message by their name in JSON, embedded ones in their place; {} for an unknown one."""
    found: dict[str, Field] = {}
    for field in _described(message):
        if field.inline:
            found.update(fields_of(field.type))
        else:
            found[field.name] = field
    return found


@cache
def wire_fields(message: str) -> tuple[Field, ...]:
    """The fields of a message as they are on the wire, embedded messages being fields of their own."""
    return tuple(field for field in _described(message) if field.number)


def full_name(message: str) -> str:
    """The full name of a message that is named in short, such as `core.v1.Pod`."""
    return _tables().full(message)


def messages() -> Collection[str]:
    """Every message of the table, by its full name."""
    return _tables().messages


@cache
def _described(message: str) -> tuple[Field, ...]:
    tables = _tables()
    merging = tables.merging.get(message, {})
    described = tables.messages.get(message, {})
    return tuple(
        _field(name, number, kind, tables, merging.get(name, {}))
        for name, (number, kind) in described.items()
    )


@dataclass(frozen=True)
class _Tables:
    """Both tables, by the messages' full names; the types in them are short."""

    packages: dict[str, str]
    messages: dict[str, dict[str, tuple[int, str]]]
    merging: dict[str, dict[str, dict[str, Any]]]

    def full(self, name: str) -> str:
        """The full name of a type; a scalar has no other."""
        package, _, last = name.rpartition(".")
        return f"{self.packages[package]}.{last}" if package else name


@cache
def _tables() -> _Tables:
    folder = files(__package__)
    raw = json.loads(folder.joinpath("schema.json").read_text(encoding="utf-8"))
    merging = tomllib.loads(folder.joinpath("merging.toml").read_text(encoding="utf-8"))
    short = _Tables(raw["packages"], raw["messages"], merging)
    return _Tables(
        short.packages,
        {short.full(message): fields for message, fields in short.messages.items()},
        {short.full(message): fields for message, fields in merging.items()},
    )


def _field(name: str, number: int, kind: str, tables: _Tables, merging: dict[str, Any]) -> Field:
    container = kind[:2] if kind[:2] in ("[]", "{}") else ""
    patch, keys = merging.get("patch"), tuple(merging.get("keys", ()))
    whole = container == "[]" and not keys and not merging.get("set")
    return Field(
        number,
        name,
        tables.full(kind.removeprefix(container).rstrip("!?")),
        repeated=container == "[]",
        map=container == "{}",
        merge_keys=keys,
        set=bool(merging.get("set")),
        atomic=bool(merging.get("atomic")) or whole,
        patch_merge_key=patch or None,
        patch_merge_primitive=patch == "",
        patch_retain_keys=bool(merging.get("retain")),
        inline=name in EMBEDDED and not container,
        pointer=kind.endswith("?"),
        required=kind.endswith("!"),
    )
