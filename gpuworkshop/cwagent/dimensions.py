"""Under which sets of dimensions a series becomes a CloudWatch metric, if under any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from gpuworkshop.cwagent.agent_config import AgentConfig
from gpuworkshop.cwagent.declarations import Declaration, Names


@dataclass(frozen=True)
class Choice:
    """The sets of dimensions, and the declarations that matched; `why` says what was lacking, if none is."""

    sets: tuple[Names, ...] = ()
    matched: tuple[int, ...] = ()
    why: str = ""


def choose(agent: AgentConfig, name: str, labels: Mapping[str, str]) -> Choice:
    """The dimension sets of a metric of that name and those labels, joined over all that match."""
    if agent.every_label:
        return Choice((tuple(sorted(labels)),))
    selecting = _selecting(agent, name)
    matched = [each for each in selecting if each.matches(labels)]
    sets = tuple(
        dict.fromkeys(names for each in matched for names in each.dimensions if all(map(labels.get, names)))
    )
    places = tuple(each.place for each in matched)
    return Choice(sets, places) if sets else Choice((), places, _why_none(agent, selecting, matched, labels))


@lru_cache(maxsize=20_000)
def _selecting(agent: AgentConfig, name: str) -> tuple[Declaration, ...]:
    return tuple(each for each in agent.in_use if each.selects(name))


def _why_none(
    agent: AgentConfig,
    selecting: tuple[Declaration, ...],
    matched: list[Declaration],
    labels: Mapping[str, str],
) -> str:
    if not agent.in_use:
        return "there is no declaration that the agent heeds"
    if not selecting:
        return "no metric_selectors select its name"
    if not matched:
        return f"no label_matcher matches: {'; '.join(_compared(each, labels) for each in selecting)}"
    missing = dict.fromkeys(
        name for each in matched for names in each.dimensions for name in names if not labels.get(name)
    )
    if not missing:
        return "the declarations that match have no usable dimension set"
    return f"each dimension set has a label that it lacks: {', '.join(missing)}"


def _compared(declaration: Declaration, labels: Mapping[str, str]) -> str:
    sources = ", ".join(declaration.source_labels)
    seen = f"{declaration.pattern!r} in [{sources}], which is {declaration.joined(labels)!r}"
    return f"{declaration.title} looks for {seen}"
