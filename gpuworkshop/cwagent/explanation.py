"""The whole story: each target, each series, the findings, and the cost.

`explain` takes texts and gives an Explanation; it reads no file and asks no server. What cannot be read is a
finding like any other, and the rest is explained as far as it goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuworkshop.cwagent import findings
from gpuworkshop.cwagent.agent_config import AgentConfig, parse_agent_config
from gpuworkshop.cwagent.case import DEFAULT_WAVE_S, Case, build_case
from gpuworkshop.cwagent.cost import Cost, cost_of
from gpuworkshop.cwagent.findings import ERROR, Finding
from gpuworkshop.cwagent.pipeline import DROPPED, METRIC, Series
from gpuworkshop.cwagent.scrape_config import ScrapeJob, parse_scrape_config
from gpuworkshop.cwagent.targets import Target
from gpuworkshop.errors import AgentConfigError, ExpositionError, ScrapeConfigError
from gpuworkshop.metrics.exposition import Family, parse_exposition


@dataclass(frozen=True)
class Row:
    """What becomes of one series of one target; `namespace`, `dimensions` and `unit` only for a metric."""

    job: str
    name: str
    labels: Mapping[str, str]
    outcome: str
    reason: str
    namespace: str | None = None
    dimensions: tuple[tuple[str, ...], ...] = ()
    unit: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As `--json` gives it."""
        return {
            "name": self.name,
            "labels": dict(self.labels),
            "outcome": self.outcome,
            "reason": self.reason,
            "namespace": self.namespace,
            "dimensions": list(map(list, self.dimensions)),
            "unit": self.unit,
        }


@dataclass(frozen=True)
class Explanation:
    """What `explain` found. `cost` is None where there is no agent's configuration to tell it from."""

    targets: Sequence[Target]
    rows: Sequence[Row]
    findings: Sequence[Finding]
    cost: Cost | None

    @property
    def failed(self) -> bool:
        """Whether a finding is an error."""
        return any(finding.severity == ERROR for finding in self.findings)

    def as_json(self) -> dict[str, Any]:
        """As `--json` gives it. A target that is dropped shows the labels that its rules saw."""
        return {
            "targets": [
                {
                    "labels": dict(target.labels if target.kept else target.discovered),
                    "kept": target.kept,
                    "rule": target.rule or None,
                }
                for target in self.targets
            ],
            "series": [row.as_json() for row in self.rows],
            "findings": [vars(finding) for finding in self.findings],
            "cost": self.cost.as_json() if self.cost else {},
        }


def explain(
    metrics: bytes | str,
    scrape_config: str,
    agent_config: str | None = None,
    *,
    discovered: Sequence[Mapping[str, str]] = (),
    served_at: str = "",
    wave_s: float = DEFAULT_WAVE_S,
) -> Explanation:
    """Explain a metrics page under a Prometheus configuration and, if given, the agent's.

    `discovered` are targets with the labels that discovery gives; without them a pod of NVIDIA's exporter is
    taken. `served_at` is the page's address, `wave_s` the period of the load that is to be seen.
    """
    unread: list[Finding] = []
    families = _families(metrics, unread)
    jobs = _jobs(scrape_config, unread)
    agent = _agent(agent_config, unread)
    case = build_case(families, jobs, agent, discovered=discovered, served_at=served_at, wave_s=wave_s)
    targets = [each.target for each in case.followed]
    return Explanation(targets, list(_rows(case)), [*unread, *findings.find(case)], cost_of(case))


def _families(metrics: bytes | str, unread: list[Finding]) -> list[Family]:
    try:
        return parse_exposition(
            metrics if isinstance(metrics, bytes) else metrics.encode(errors="surrogatepass")
        )
    except ExpositionError as error:
        unread.append(Finding("invalid-metrics", ERROR, error.seen, error.todo))
        return []


def _jobs(text: str, unread: list[Finding]) -> list[ScrapeJob]:
    try:
        return parse_scrape_config(text)
    except ScrapeConfigError as error:
        unread.append(Finding("invalid-scrape-config", ERROR, error.seen, error.todo))
        return []


def _agent(text: str | None, unread: list[Finding]) -> AgentConfig | None:
    if text is None:
        return None
    try:
        return parse_agent_config(text)
    except AgentConfigError as error:
        unread.append(Finding("invalid-json", ERROR, f"the agent's configuration: {error.seen}", error.todo))
        return None


def _rows(case: Case) -> Iterator[Row]:
    for each in case.followed:
        for series in each.series:
            yield _row(series, each.target, case.agent)


def _row(series: Series, target: Target, agent: AgentConfig | None) -> Row:
    job, name, labels = target.job.name, series.name, series.labels
    if not target.kept:
        return Row(job, name, labels, DROPPED, f"its target is dropped by {target.rule}")
    if series.outcome != METRIC or agent is None:
        return Row(job, name, labels, series.outcome, series.reason)
    unit = agent.units.get(name) or None
    return Row(job, name, labels, METRIC, series.reason, agent.namespace, series.sets, unit)
