"""A relabel rule: its fields and defaults, and what Prometheus refuses, in Prometheus's own words.

Scalars may come as YAML or JSON gave them: Prometheus reads `regex: true` as the text `true`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuworkshop.cwagent.regexes import Regex, compile_anchored
from gpuworkshop.cwagent.templates import has_variable
from gpuworkshop.errors import RelabelError

DEFAULT_REGEX = "(.*)"
DEFAULT_SEPARATOR = ";"
DEFAULT_REPLACEMENT = "$1"
MOST_MODULUS = 2**64
EQUALS = ("keepequal", "dropequal")
CASES = ("lowercase", "uppercase")
BY_NAME = ("labeldrop", "labelkeep")
ACTIONS = ("replace", "keep", "drop", "hashmod", "labelmap", *BY_NAME, *CASES, *EQUALS)
FIELDS = ("source_labels", "separator", "regex", "modulus", "target_label", "replacement", "action")


@dataclass(frozen=True)
class Rule:
    """One `relabel_config`, checked and compiled. `pattern` is the regex as it was written.

    `source_labels` is None where the rule does not name any; `regex_given` tells a written `(.*)` from the
    default, as Prometheus does.
    """

    action: str
    sources: tuple[str, ...] | None
    separator: str
    pattern: str
    regex: Regex
    regex_given: bool
    replacement_given: bool
    modulus: int
    target_label: str
    replacement: str

    @property
    def source_labels(self) -> tuple[str, ...]:
        """The labels whose values are joined and matched."""
        return self.sources or ()

    @property
    def is_copy(self) -> bool:
        """Whether it only copies the joined values to a fixed label."""
        return (
            self.pattern == DEFAULT_REGEX
            and self.replacement in (DEFAULT_REPLACEMENT, "${1}")
            and not has_variable(self.target_label)
        )

    def __str__(self) -> str:
        sources = f" on [{', '.join(self.source_labels)}]" if self.source_labels else ""
        target = f" to {self.target_label}" if self.target_label else ""
        return f"{self.action}{sources} {self.pattern}{target}"


def compile_rules(configs: object, where: str = "relabel_configs") -> tuple[Rule, ...]:
    """The rules of a list. Raises RelabelError that names the place, such as `relabel_configs[2]`."""
    if configs is None:
        return ()
    if not isinstance(configs, Sequence) or isinstance(configs, str):
        raise _refused(f"{where}: cannot unmarshal {_yaml_kind(configs)} into []*relabel.Config")
    rules = []
    for place, config in enumerate(configs):
        try:
            rules.append(compile_rule(config))
        except RelabelError as error:
            raise _refused(f"{where}[{place}]: {error.seen}", (where, place)) from error
    return tuple(rules)


def compile_rule(config: Mapping[str, Any] | None) -> Rule:
    """One rule. Raises RelabelError."""
    if not config:
        if config is None:
            raise _refused("empty or null relabeling rule in scrape config")
        config = {}
    if not isinstance(config, Mapping):
        raise _refused(f"cannot unmarshal {_yaml_kind(config)} into relabel.plain")
    for field in config:
        if field not in FIELDS:
            raise _refused(f"field {field} not found in type relabel.plain")
    rule = _read(config)
    _check(rule)
    return rule


def _read(config: Mapping[str, Any]) -> Rule:
    pattern = _text(config, "regex", DEFAULT_REGEX)
    try:
        regex = compile_anchored(pattern)
    except ValueError as error:
        raise _refused(str(error)) from error
    return Rule(
        action=_action(config),
        sources=_sources(config.get("source_labels")),
        separator=_text(config, "separator", DEFAULT_SEPARATOR),
        pattern=pattern,
        regex=regex,
        regex_given="regex" in config,
        replacement_given="replacement" in config,
        modulus=_modulus(config.get("modulus")),
        target_label=_text(config, "target_label", ""),
        replacement=_text(config, "replacement", DEFAULT_REPLACEMENT),
    )


def _action(config: Mapping[str, Any]) -> str:
    text = _text(config, "action", "replace")
    action = text.lower()
    if config.get("action", "replace") is None:
        raise _refused("relabel action cannot be empty")
    if action not in ACTIONS:
        raise _refused(f"unknown relabel action {quoted(text)}")
    return action


def _sources(given: object) -> tuple[str, ...] | None:
    if given is None:
        return None
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise _refused(f"cannot unmarshal {_yaml_kind(given)} into model.LabelNames")
    names = tuple(_scalar(name, "source_labels") for name in given)
    for name in names:
        if not is_label_name(name):
            raise _refused(f"{quoted(name)} is not a valid label name")
    return names


def _modulus(given: object) -> int:
    if given is None:
        return 0
    text = str(given)
    if isinstance(given, bool) or not (text.isascii() and text.isdecimal() and len(text) <= 20):
        raise _not_whole(given, text)
    if int(text) >= MOST_MODULUS:
        raise _not_whole(given, text)
    return int(text)


def _not_whole(given: object, text: str) -> RelabelError:
    return _refused(f"cannot unmarshal {_yaml_kind(given)} `{text[:40]}` into uint64")


def _check(rule: Rule) -> None:
    """The rules of Prometheus's own validation, in its order."""
    action, target = rule.action, rule.target_label
    if action == "hashmod" and not rule.modulus:
        raise _refused("relabel configuration for hashmod requires non-zero modulus")
    if action in ("replace", "hashmod", *CASES, *EQUALS):
        if not target:
            raise _refused(f"relabel configuration for {action} action requires 'target_label' value")
        if not is_label_name(target):
            raise _refused(f"{quoted(target)} is invalid 'target_label' for {action} action")
    if action in (*CASES, *EQUALS) and rule.replacement != DEFAULT_REPLACEMENT:
        raise _refused(f"'replacement' can not be set for {action} action")
    if action == "labelmap" and not is_label_name(rule.replacement):
        raise _refused(f"{quoted(rule.replacement)} is invalid 'replacement' for {action} action")
    if action in EQUALS and (rule.regex_given or _other_fields(rule)):
        raise _refused(
            f"{action} action requires only 'source_labels' and `target_label`, and no other fields"
        )
    if action in BY_NAME and (rule.sources is not None or target or _other_fields(rule)):
        raise _refused(f"{action} action requires only 'regex', and no other fields")


def _other_fields(rule: Rule) -> bool:
    return rule.modulus != 0 or rule.separator != DEFAULT_SEPARATOR or rule.replacement != DEFAULT_REPLACEMENT


def is_label_name(name: str) -> bool:
    """Whether Prometheus 3 takes it as a label's name: any text of UTF-8 but the empty one."""
    return bool(name) and not any("\ud800" <= character <= "\udfff" for character in name)


def quoted(text: str) -> str:
    """The text as Go's %q shows it."""
    return json.dumps(text, ensure_ascii=False)


def _text(config: Mapping[str, Any], field: str, default: str) -> str:
    return _scalar(config[field], field) if field in config else default


def _scalar(value: object, field: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    raise _refused(f"cannot unmarshal {_yaml_kind(value)} into string: {field}")


def _yaml_kind(value: object) -> str:
    if isinstance(value, Mapping):
        return "!!map"
    if isinstance(value, list | tuple):
        return "!!seq"
    return {bool: "!!bool", int: "!!int", float: "!!float"}.get(type(value), "!!str")


def _refused(seen: str, path: tuple[str | int, ...] = ()) -> RelabelError:
    return RelabelError(
        seen,
        path=path,
        step="reading a relabel rule",
        todo="mend that rule; Prometheus and the agent would refuse the whole configuration",
    )
