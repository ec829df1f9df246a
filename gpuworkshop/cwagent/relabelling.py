"""Prometheus's relabelling: rules that rewrite the labels of a target or a series, or drop it.

The rules are those of Prometheus 3: RE2 anchored at both ends, a dot that also matches a newline, label
names of any UTF-8. `relabel` does it in one call; whoever has many series compiles the rules once.
Source: Prometheus's configuration reference, and the behaviour of its package `relabel`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from gpuworkshop.cwagent.regexes import Regex
from gpuworkshop.cwagent.rules import Rule, compile_rule, compile_rules
from gpuworkshop.cwagent.templates import expand, has_variable

__all__ = ["Outcome", "Rule", "compile_rules", "relabel", "run"]


@dataclass(frozen=True)
class Outcome:
    """The labels after all rules, and the place of the first rule that dropped them, if one did."""

    labels: dict[str, str]
    dropped_at: int | None = None


def relabel(labels: Mapping[str, str], configs: Sequence[Mapping[str, Any] | Rule]) -> dict[str, str] | None:
    """The labels after the rules, None if a rule drops them; a label without a value is no label.

    A config is a mapping with the keys of a `relabel_config`. Raises RelabelError, in Prometheus's words,
    for one that Prometheus refuses.
    """
    rules = tuple(config if isinstance(config, Rule) else compile_rule(config) for config in configs)
    outcome = run(labels, rules)
    return outcome.labels if outcome.dropped_at is None else None


def run(
    labels: Mapping[str, str],
    rules: Sequence[Rule],
    *,
    defaults: Mapping[str, str] = MappingProxyType({}),
    go_on: bool = False,
) -> Outcome:
    """What the compiled rules do. `defaults` are set first, where `labels` has no value.

    With `go_on`, the rules after one that drops are followed all the same.
    """
    builder = _Builder(labels)
    for name, value in defaults.items():
        if name not in builder.labels:
            builder.set(name, value)
    dropped_at = None
    for place, rule in enumerate(rules):
        value = rule.separator.join([builder.labels.get(name, "") for name in rule.source_labels])
        if _ACTIONS[rule.action](rule, value, builder):
            continue
        if dropped_at is None:
            dropped_at = place
        if not go_on:
            break
    return Outcome(builder.labels, dropped_at)


class _Builder:
    """Labels under way: the first ones by name, then those that rules set.

    The order decides which of two labels wins that a labelmap maps to one name: the later one. So it is for
    the labels of a series; among those of a target Prometheus leaves it to chance.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.labels = {name: labels[name] for name in sorted(labels) if labels[name]}
        self._added: set[str] = set()

    def set(self, name: str, value: str) -> None:
        if not value:
            self.delete(name)
            return
        if name not in self._added:
            self._added.add(name)
            self.labels.pop(name, None)
        self.labels[name] = value

    def delete(self, name: str) -> None:
        self._added.discard(name)
        self.labels.pop(name, None)


def _keep(rule: Rule, value: str, _builder: _Builder) -> bool:
    return rule.regex.search(value) is not None


def _drop(rule: Rule, value: str, _builder: _Builder) -> bool:
    return rule.regex.search(value) is None


def _keep_equal(rule: Rule, value: str, builder: _Builder) -> bool:
    return builder.labels.get(rule.target_label, "") == value


def _drop_equal(rule: Rule, value: str, builder: _Builder) -> bool:
    return builder.labels.get(rule.target_label, "") != value


def _replace(rule: Rule, value: str, builder: _Builder) -> bool:
    if rule.is_copy:
        builder.set(rule.target_label, value)
        return True
    match = rule.regex.search(value)
    if match is None:
        return True
    target = _filled(rule.target_label, rule.regex, match)
    if target:
        builder.set(target, _filled(rule.replacement, rule.regex, match))
    return True


def _filled(template: str, regex: Regex, match: Any) -> str:
    return expand(template, regex, match) if has_variable(template) else template


def _lowercase(rule: Rule, value: str, builder: _Builder) -> bool:
    builder.set(rule.target_label, "".join(map(_lower, value)))
    return True


def _uppercase(rule: Rule, value: str, builder: _Builder) -> bool:
    builder.set(rule.target_label, "".join(map(_upper, value)))
    return True


def _hashmod(rule: Rule, value: str, builder: _Builder) -> bool:
    digest = hashlib.md5(value.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    builder.set(rule.target_label, str(int.from_bytes(digest[8:], "big") % rule.modulus))
    return True


def _labelmap(rule: Rule, _value: str, builder: _Builder) -> bool:
    for name, value in list(builder.labels.items()):
        if (match := rule.regex.search(name)) is not None:
            builder.set(_filled(rule.replacement, rule.regex, match), value)
    return True


def _labeldrop(rule: Rule, _value: str, builder: _Builder) -> bool:
    for name in list(builder.labels):
        if rule.regex.search(name) is not None:
            builder.delete(name)
    return True


def _labelkeep(rule: Rule, _value: str, builder: _Builder) -> bool:
    for name in list(builder.labels):
        if rule.regex.search(name) is None:
            builder.delete(name)
    return True


def _lower(character: str) -> str:
    """Go maps rune by rune, never to more than one: capital I with a dot becomes a plain i."""
    return character.lower()[:1]


def _upper(character: str) -> str:
    upper = character.upper()
    if len(upper) == 1:
        return upper
    title = character.title()
    return title if len(title) == 1 else character


_ACTIONS: dict[str, Callable[[Rule, str, _Builder], bool]] = {
    "replace": _replace,
    "keep": _keep,
    "drop": _drop,
    "keepequal": _keep_equal,
    "dropequal": _drop_equal,
    "hashmod": _hashmod,
    "labelmap": _labelmap,
    "labeldrop": _labeldrop,
    "labelkeep": _labelkeep,
    "lowercase": _lowercase,
    "uppercase": _uppercase,
}
