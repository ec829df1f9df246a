"""The log events that the agent writes: CloudWatch's embedded metric format, version 0.

Series of the same labels and time share an event. In it those that the same declarations matched share a
directive, which lists their names under their joined dimension sets. What no declaration took is in the event
too: it is logged, and billed, without becoming a metric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuworkshop.cwagent.agent_config import AgentConfig
from gpuworkshop.cwagent.pipeline import DROPPED, METRIC, Series

MOST_METRICS = 100
"""In one directive; the service rejects more, and the agent does not split."""


@dataclass(frozen=True)
class LogEvent:
    """One event, where it goes, and its content."""

    group: str
    stream: str
    time_ms: int
    content: Mapping[str, Any]


def log_events(series: Iterable[Series], agent: AgentConfig) -> list[LogEvent]:
    """The events of a scrape: `content` is what is written as JSON, one line an event."""
    together: dict[tuple[int, tuple[tuple[str, str], ...]], list[Series]] = {}
    for each in series:
        if each.outcome != DROPPED and each.value is not None:
            key = each.time_ms, tuple(sorted(each.labels.items()))
            together.setdefault(key, []).append(each)
    return [_event(alike, agent) for alike in together.values()]


def _event(series: list[Series], agent: AgentConfig) -> LogEvent:
    labels, time_ms = series[0].labels, series[0].time_ms
    content = _content(series, agent, time_ms)
    return LogEvent(agent.log_group_of(labels), labels.get("job", ""), time_ms, content)


def _content(series: list[Series], agent: AgentConfig, time_ms: int) -> dict[str, Any]:
    directives = _directives(series, agent)
    return {
        **({"CloudWatchMetrics": directives} if directives else {}),
        "Timestamp": str(time_ms),
        "Version": "0",
        **series[0].labels,
        **{each.name: _number(each.value) for each in series},
    }


def _directives(series: list[Series], agent: AgentConfig) -> list[dict[str, Any]]:
    groups: dict[tuple[int, ...], dict[str, Series]] = {}
    for each in series:
        if each.outcome == METRIC:
            groups.setdefault(each.matched, {})[each.name] = each
    return [
        {
            "Namespace": agent.namespace,
            "Dimensions": list(
                map(list, dict.fromkeys(names for each in group.values() for names in each.sets))
            ),
            "Metrics": [_metric(name, agent) for name in group],
        }
        for group in groups.values()
    ]


def _metric(name: str, agent: AgentConfig) -> dict[str, str]:
    unit = agent.units.get(name, "")
    return {"Name": name, "Unit": unit} if unit else {"Name": name}


def _number(value: float | None) -> float | int | None:
    """As Go writes a float64: a whole number has no point."""
    return int(value) if value is not None and value.is_integer() and abs(value) < 1e21 else value
