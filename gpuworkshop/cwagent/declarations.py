"""Metric declarations: which series become CloudWatch metrics, and by which sets of dimensions.

The matcher and the selectors are RE2 that may match anywhere. The values of the source labels are joined
with `;`, a missing one counts as empty. A set of dimensions of which the series lacks one is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpuworkshop.cwagent.regexes import Regex, compile_regex

SEPARATOR = ";"
DEFAULT_MATCHER = ".*"
MOST_DIMENSIONS = 10
Names = tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """Something in the agent's configuration that it skips or misreads. `line` counts from 1, 0: unknown."""

    code: str
    seen: str
    line: int = 0


@dataclass(frozen=True)
class Declaration:
    """One `metric_declaration`, at `place` of the list; the names in each set are sorted and differ.

    `skipped` says why the agent passes it over in silence, `matcher_error` why its matcher does not compile.
    """

    place: int
    source_labels: Names = ()
    pattern: str = DEFAULT_MATCHER
    matcher: Regex | None = None
    matcher_error: str = ""
    selectors: tuple[tuple[str, Regex], ...] = ()
    dimensions: tuple[Names, ...] = ()
    skipped: str = ""

    @property
    def in_use(self) -> bool:
        """Whether the agent heeds it."""
        return not self.skipped and self.matcher is not None

    @property
    def title(self) -> str:
        """How messages name it."""
        return f"metric_declaration[{self.place}]"

    def joined(self, labels: Mapping[str, str]) -> str:
        """The text that the matcher sees."""
        return SEPARATOR.join([labels.get(name, "") for name in self.source_labels])

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the matcher finds something in the labels."""
        return self.matcher is not None and self.matcher.search(self.joined(labels)) is not None

    def selects(self, name: str) -> bool:
        """Whether one of its selectors finds something in the metric's name."""
        return any(regex.search(name) is not None for _, regex in self.selectors)


Found = list[tuple[Fault, tuple[str | int, ...]]]


def read_declaration(entry: object, place: int) -> tuple[Declaration, Found]:
    """A declaration as the agent reads it, and what it forgives there, each with its path in the entry."""
    found: Found = []
    title = f"metric_declaration[{place}]"
    if not isinstance(entry, Mapping):
        found.append((Fault("wrong-shape", f"{title} is no object"), ()))
        return Declaration(place, skipped="it is no object"), found
    sources = _names(entry, "source_labels", title, found)
    selectors = _selectors(entry, title, found)
    missing = [
        name
        for name, value in (("source_labels", sources), ("metric_selectors", entry.get("metric_selectors")))
        if not value
    ]
    skipped = f"it has no {' and no '.join(missing)}" if missing else ""
    if skipped:
        found.append((Fault("declaration-skipped", f"{title} is skipped without a word: {skipped}"), ()))
    pattern = entry.get("label_matcher", DEFAULT_MATCHER)
    matcher, error = _compiled(pattern if isinstance(pattern, str) else "")
    if not isinstance(pattern, str):
        found.append((Fault("wrong-shape", f"label_matcher of {title} is no text"), ("label_matcher",)))
    if error and not skipped:
        seen = f"label_matcher {pattern!r} of {title} does not compile: {error}"
        found.append((Fault("matcher-does-not-compile", seen), ("label_matcher",)))
    separator = entry.get("label_separator", SEPARATOR)
    if separator != SEPARATOR and len(sources) > 1:
        seen = f"label_separator {separator!r} of {title} is ignored since 1.300025: ; joins the values"
        found.append((Fault("separator-ignored", seen), ("label_separator",)))
    sets = _sets(entry, title, found)
    return Declaration(place, sources, str(pattern), matcher, error, selectors, sets, skipped), found


def _names(entry: Mapping[str, Any], field: str, title: str, found: Found) -> Names:
    value = entry.get(field, [])
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    found.append((Fault("wrong-shape", f"{field} of {title} is no list of texts"), (field,)))
    return ()


def _selectors(entry: Mapping[str, Any], title: str, found: Found) -> tuple[tuple[str, Regex], ...]:
    selectors = []
    for place, text in enumerate(_names(entry, "metric_selectors", title, found)):
        regex, error = _compiled(text)
        if regex is None:
            seen = f"metric selector {text!r} of {title} does not compile: {error}"
            found.append((Fault("selector-does-not-compile", seen), ("metric_selectors", place)))
        else:
            selectors.append((text, regex))
    return tuple(selectors)


def _compiled(text: str) -> tuple[Regex | None, str]:
    try:
        return compile_regex(text), ""
    except ValueError as error:
        return None, str(error)


def _sets(entry: Mapping[str, Any], title: str, found: Found) -> tuple[Names, ...]:
    given = entry.get("dimensions", [])
    if not isinstance(given, list) or not given:
        seen = f"{title} has no list of dimension sets, so that it only logs"
        found.append((Fault("dimensions-missing", seen), ("dimensions",)))
        return ()
    sets: list[Names] = []
    for place, names in enumerate(given):
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            seen = f"dimensions of {title} is a list of lists, [[…]]; {names!r} is no list of names"
            found.append((Fault("dimensions-not-nested", seen), ("dimensions", place)))
            continue
        if len(names) > MOST_DIMENSIONS:
            seen = f"a dimension set of {title} has {len(names)} names, and the agent drops those over "
            seen += str(MOST_DIMENSIONS)
            found.append((Fault("too-many-dimensions", seen), ("dimensions", place)))
            continue
        if (ordered := tuple(sorted(set(names)))) not in sets:
            sets.append(ordered)
    return tuple(sets)
