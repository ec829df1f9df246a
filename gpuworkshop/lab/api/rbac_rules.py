"""One rule of a role, ready to be asked, and what it takes to cover one rule by others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Rule:
    """What may be done with which resources, or URLs; `*` is any, and no names are all names."""

    verbs: frozenset[str]
    groups: frozenset[str] = NOTHING
    resources: frozenset[str] = NOTHING
    names: frozenset[str] = NOTHING
    urls: frozenset[str] = NOTHING

    def allows(self, verb: str, group: str, resource: str, name: str) -> bool:
        """Whether it allows the verb on `pods`, or on a subresource such as `pods/log`."""
        if not (_holds(self.verbs, verb) and _holds(self.groups, group)):
            return False
        if not self._covers_resource(resource):
            return False
        return not self.names or name in self.names

    def _covers_resource(self, resource: str) -> bool:
        if _holds(self.resources, resource):
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self.resources

    def allows_url(self, verb: str, path: str) -> bool:
        """Whether it allows the verb, an HTTP method, on a path that names no resource."""
        return _holds(self.verbs, verb) and any(
            url == path or (url.endswith("*") and path.startswith(url.rstrip("*"))) for url in self.urls
        )

    def object(self) -> dict[str, list[str]]:
        """The rule as the API writes it."""
        found = {
            "verbs": self.verbs,
            "apiGroups": self.groups,
            "resources": self.resources,
            "resourceNames": self.names,
            "nonResourceURLs": self.urls,
        }
        return {key: sorted(values) for key, values in found.items() if values}

    def parts(self) -> Iterator[Rule]:
        """The rule as many rules, each with a single verb, resource and name, or URL."""
        for verb, group, resource in product(*map(sorted, (self.verbs, self.groups, self.resources))):
            for name in sorted(self.names) or [""]:
                named = frozenset([name]) if name else NOTHING
                yield Rule(frozenset([verb]), frozenset([group]), frozenset([resource]), named)
        for verb, url in product(sorted(self.verbs), sorted(self.urls)):
            yield Rule(frozenset([verb]), urls=frozenset([url]))

    def __str__(self) -> str:
        """The rule as the refusal of an escalation names it."""
        words = {
            "APIGroups": self.groups,
            "Resources": self.resources,
            "ResourceNames": self.names,
            "NonResourceURLs": self.urls,
            "Verbs": self.verbs,
        }
        said = [f"{key}:[{', '.join(_quoted(values))}]" for key, values in words.items() if values]
        return "{" + ", ".join(said) + "}"


EVERYTHING = (
    Rule(frozenset("*"), frozenset("*"), frozenset("*")),
    Rule(frozenset("*"), urls=frozenset("*")),
)


def rules_of(found: Iterable[Mapping[str, Any]] | None) -> tuple[Rule, ...]:
    """The rules of a role's `rules`."""
    return tuple(
        Rule(
            frozenset(rule.get("verbs") or ()),
            frozenset(rule.get("apiGroups") or ()),
            frozenset(rule.get("resources") or ()),
            frozenset(rule.get("resourceNames") or ()),
            frozenset(rule.get("nonResourceURLs") or ()),
        )
        for rule in found or ()
    )


def uncovered(wanted: Iterable[Rule], held: Sequence[Rule]) -> list[Rule]:
    """What of the rules `wanted` is not in those that are `held`, the verbs of a resource together."""
    missing: dict[tuple[frozenset[str], ...], frozenset[str]] = {}
    for rule in wanted:
        for part in rule.parts():
            if not any(_covers(one, part) for one in held):
                key = (part.groups, part.resources, part.names, part.urls)
                missing[key] = missing.get(key, NOTHING) | part.verbs
    return [Rule(verbs, *key) for key, verbs in missing.items()]


def _covers(held: Rule, part: Rule) -> bool:
    """Whether `held` allows all that `part`, a rule of single values, allows."""
    (verb,) = part.verbs
    if part.urls:
        (url,) = part.urls
        return held.allows_url(verb, url)
    (group,), (resource,) = part.groups, part.resources
    return held.allows(verb, group, resource, next(iter(part.names), ""))


def _holds(values: frozenset[str], value: str) -> bool:
    return value in values or "*" in values


def _quoted(values: Iterable[str]) -> list[str]:
    return [f'"{value}"' for value in sorted(values)]
