"""What can be known of a GPU, under one name, whatever exporter is there.

`catalog.toml` holds a quantity each: what it is called, what it means, and its metric name, unit and factor
in each release of DCGM's exporter. A quantity has one unit; `promql()` asks for all its names and converts.
Sources: DCGM's field reference, and its table of names that were replaced with exporter 4.9.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from gpuworkshop.errors import UnknownQuantity
from gpuworkshop.metrics.near import near

RELEASES = ("4.8.4", "4.9")
"""Releases whose names are known; 4.8.2 and older have those of 4.8.4."""

_PREFIXES = ("dcgm fi ", "dev ", "prof ")


@dataclass(frozen=True)
class Field:
    """A quantity's metric in one release: a value of it times `factor` is in the quantity's unit."""

    name: str
    unit: str
    factor: float = 1.0

    def promql(self, matchers: str = "") -> str:
        """PromQL in the quantity's unit; `matchers` as between braces."""
        selector = f"{self.name}{{{matchers}}}" if matchers else self.name
        if self.factor == 1:
            return selector
        divisor = round(1 / self.factor)
        return f"({selector} / {divisor})" if self.factor < 1 else f"({selector} * {self.factor:g})"


@dataclass(frozen=True)
class Quantity:
    """Something measured of a GPU. `fields` has its metric in each release that knows it, oldest first."""

    key: str
    title: str
    unit: str
    meaning: str
    fields: Mapping[str, Field]
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> Mapping[str, str]:
        """Its metric's name in each release."""
        return MappingProxyType({release: field.name for release, field in self.fields.items()})

    def promql(self, matchers: str = "") -> str:
        """PromQL that finds it whatever exporter is there, in its unit.

        `matchers` narrows it, with or without braces: `pod="train-0"`.
        """
        inside = matchers.strip().removeprefix("{").removesuffix("}")
        by_name = {field.name: field for field in self.fields.values()}
        return " or ".join(field.promql(inside) for field in by_name.values())


@cache
def quantities() -> tuple[Quantity, ...]:
    """All of them, in the order of DCGM's own list."""
    table = tomllib.loads(files("gpuworkshop.metrics").joinpath("catalog.toml").read_text(encoding="utf-8"))
    return tuple(_quantity(key, entry) for key, entry in table.items())


def find(text: str) -> Quantity:
    """The quantity of that key, title, other name, or DCGM name of any release.

    Capitals, hyphens and British or American spelling do not matter. Raises UnknownQuantity with near names.
    """
    known = _by_text()
    if found := known.get(_plain(text)):
        return found
    alike = tuple(dict.fromkeys(known[name].title for name in near(_plain(text), known, count=5)))
    hint = f"did you mean {' or '.join(alike)}?" if alike else "catalog.quantities() lists all"
    raise UnknownQuantity(
        f"no quantity is called {text!r}", near=alike, step="looking up a quantity", todo=hint
    )


def unit_of(metric: str) -> str:
    """The unit of a metric under its own name, as its exporter gives it; "" for one not in the catalogue."""
    return next(
        (field.unit for each in quantities() for field in each.fields.values() if field.name == metric), ""
    )


def _quantity(key: str, entry: Mapping[str, Any]) -> Quantity:
    unit = entry["unit"]
    fields = {release: Field(**{"unit": unit, **entry[release]}) for release in RELEASES if release in entry}
    return Quantity(
        key, entry["title"], unit, entry["meaning"], MappingProxyType(fields), tuple(entry["aliases"])
    )


@cache
def _by_text() -> Mapping[str, Quantity]:
    known: dict[str, Quantity] = {}
    for each in quantities():
        for text in (each.key, each.title, *each.aliases, *each.names.values()):
            name = _plain(text)
            known.setdefault(name, each)
            for prefix in _PREFIXES:  # DCGM's names are also found without theirs
                name = name.removeprefix(prefix)
                known.setdefault(name, each)
    return known


def _plain(text: str) -> str:
    words = re.sub(r"[\s_\-]+", " ", text.casefold()).strip()
    return words.replace("utiliz", "utilis")
