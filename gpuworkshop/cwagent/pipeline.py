"""One scrape through Prometheus's half and the agent's: what becomes of every series, and why.

A pure function: what has to be known from the scrapes before, the last values of the counters, goes in and
comes out. The order is the agent's own: labels, type, value, what counters gained, ClusterName, dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuworkshop.cwagent import metric_types
from gpuworkshop.cwagent.agent_config import AgentConfig
from gpuworkshop.cwagent.declarations import Names
from gpuworkshop.cwagent.deltas import Baseline, Deltas
from gpuworkshop.cwagent.dimensions import choose
from gpuworkshop.cwagent.series import NAME, follow_labels
from gpuworkshop.cwagent.targets import Target
from gpuworkshop.metrics.exposition import Family, Sample

METRIC, LOG, DROPPED = "metric", "log", "dropped"
LATEST_S = 1e12  # a time beyond is noise
TYPE_LABEL, CLUSTER_LABEL = "prom_metric_type", "ClusterName"


@dataclass(frozen=True)
class Scrape:
    """A metrics page of `target`, read at `time_ms` (epoch milliseconds)."""

    target: Target
    families: Sequence[Family]
    time_ms: int = 0


@dataclass(slots=True)
class Series:
    """What becomes of one sample: `outcome` is METRIC, LOG or DROPPED, `reason` says why.

    `labels` are without the name. `value` is None where the scrape gives none: on a counter's first.
    `time_ms` is the exporter's own time of the sample if it gave one and the job honours it.
    """

    sample: Sample
    name: str
    labels: Mapping[str, str]
    outcome: str
    reason: str
    kind: str = ""
    value: float | None = None
    time_ms: int = 0
    sets: tuple[Names, ...] = ()
    matched: tuple[int, ...] = ()


@dataclass(frozen=True)
class Processed:
    """The series in the order of the page, and the baseline for the next scrape of this target."""

    series: list[Series]
    baseline: Baseline


def process(scrape: Scrape, agent: AgentConfig | None, baseline: Baseline | None = None) -> Processed:
    """What becomes of every sample of a scrape. Without `agent`, by Prometheus's half alone."""
    types = metric_types.declared(scrape.families)
    deltas = Deltas(baseline or {}, scrape.time_ms)
    found = []
    for family in scrape.families:
        for sample in family.samples:
            series = _prometheus_half(sample, scrape.target)
            series.time_ms = _time_ms(sample, scrape)
            if agent is not None and series.outcome != DROPPED:
                _agent_half(series, agent, types, deltas)
            found.append(series)
    return Processed(found, deltas.after)


def _time_ms(sample: Sample, scrape: Scrape) -> int:
    own = sample.timestamp if scrape.target.job.honor_timestamps else None
    return round(own * 1000) if own is not None and abs(own) < LATEST_S else scrape.time_ms


def _prometheus_half(sample: Sample, target: Target) -> Series:
    outcome = follow_labels(sample.name, sample.labels, target)
    labels = outcome.labels
    name = labels.pop(NAME, "")
    if outcome.dropped_at is not None:
        rule = target.job.metric_rules[outcome.dropped_at]
        reason = f"metric_relabel_configs[{outcome.dropped_at}] drops it: {rule}"
        return Series(sample, sample.name, labels, DROPPED, reason)
    if not name:
        return Series(sample, sample.name, labels, DROPPED, "a metric rule takes its name away")
    reason = "Prometheus stores it; no agent configuration was given"
    return Series(sample, name, labels, METRIC, reason, value=sample.value)


def _agent_half(series: Series, agent: AgentConfig, types: Mapping[str, str], deltas: Deltas) -> None:
    name = series.name
    series.kind = metric_types.lookup(series.sample.name, types)
    if why := metric_types.why_dropped(series.sample.name, series.kind):
        series.outcome, series.reason, series.value = DROPPED, why, None
        return
    labels = {**series.labels, TYPE_LABEL: series.kind}
    value = series.sample.value
    if metric_types.is_cumulative(name, series.kind):
        series.value = deltas.added(name, labels, value)
    if not math.isfinite(value):
        series.outcome, series.value = DROPPED, None
        series.reason = f"its value is {value}, which CloudWatch cannot keep"
        return
    labels.setdefault(CLUSTER_LABEL, agent.cluster)
    series.labels = labels
    choice = choose(agent, name, labels)
    series.sets, series.matched = choice.sets, choice.matched
    if choice.sets:
        series.outcome, series.reason = METRIC, _why_metric(agent, choice.matched)
    else:
        series.outcome, series.reason = LOG, choice.why


def _why_metric(agent: AgentConfig, matched: tuple[int, ...]) -> str:
    if agent.every_label:
        return "the only label_matcher does not compile: everything goes out, every label a dimension"
    return f"selected by {', '.join(f'metric_declaration[{place}]' for place in matched)}"
