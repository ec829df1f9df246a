"""What the metrics and logs of a configuration cost a month, at the number of pods on the metrics page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gpuworkshop.cwagent import prices
from gpuworkshop.cwagent.agent_config import AgentConfig
from gpuworkshop.cwagent.case import Case, Followed
from gpuworkshop.cwagent.emf import log_events
from gpuworkshop.cwagent.labels import gpu_of, pod_of
from gpuworkshop.cwagent.pipeline import METRIC, Series

GIGABYTE = 2**30


@dataclass(frozen=True)
class Cost:
    """A month's cost. `metrics` counts as CloudWatch bills: each name under each set of dimension values."""

    region: str
    currency: str
    pods: int
    gpus: int
    metrics: int
    metrics_month: float
    log_gigabytes_month: float
    logs_month: float
    total_month: float
    total_hour: float
    checked: str
    source: str

    def as_json(self) -> dict[str, Any]:
        """As `--json` gives it."""
        return asdict(self)


def cost_of(case: Case) -> Cost | None:
    """The cost of what is kept; None without an agent's configuration."""
    if case.agent is None:
        return None
    table = prices.load()
    kept = [each for each in case.followed if each.target.kept]
    metrics = len(identities((each for followed in kept for each in followed.series), case.agent))
    seconds = table.hours_a_month * 3600
    gigabytes = sum(bytes_a_scrape(each, case.agent) * seconds / each.target.job.interval_s for each in kept)
    gigabytes /= GIGABYTE
    for_metrics, for_logs = table.metrics(metrics), gigabytes * table.log_gigabyte
    samples = [sample.labels for family in case.families for sample in family.samples]
    return Cost(
        region=table.region,
        currency="USD",
        pods=len({pod for labels in samples if (pod := pod_of(labels))}),
        gpus=len({gpu for labels in samples if (gpu := gpu_of(labels))}),
        metrics=metrics,
        metrics_month=round(for_metrics, 2),
        log_gigabytes_month=round(gigabytes, 3),
        logs_month=round(for_logs, 2),
        total_month=round(for_metrics + for_logs, 2),
        total_hour=round((for_metrics + for_logs) / table.hours_a_month, 4),
        checked=table.checked,
        source=table.source,
    )


def identities(series: Iterable[Series], agent: AgentConfig) -> set[tuple[str, ...]]:
    """The CloudWatch metrics that these series become."""
    return {
        identity
        for each in series
        if each.outcome == METRIC
        for identity in identities_of(each, agent.namespace)
    }


def identities_of(series: Series, namespace: str) -> list[tuple[str, ...]]:
    """The CloudWatch metrics that one series becomes, one a dimension set."""
    labels: Mapping[str, str] = series.labels
    return [(namespace, series.name, *(f"{name}={labels[name]}" for name in names)) for names in series.sets]


def bytes_a_scrape(followed: Followed, agent: AgentConfig) -> int:
    """What one scrape writes to the logs."""
    events = log_events(followed.series, agent)
    return sum(len(json.dumps(event.content, ensure_ascii=False).encode()) for event in events)
