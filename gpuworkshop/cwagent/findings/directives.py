"""More metrics in one directive than the service takes."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.emf import MOST_METRICS, log_events
from gpuworkshop.cwagent.findings.finding import ERROR, Finding


def too_many_metrics(case: Case) -> Iterator[Finding]:
    """One finding a job, for the fullest directive of its events."""
    if case.agent is None:
        return
    most: dict[str, int] = {}
    for each in case.of_interest:
        for event in log_events(each.series, case.agent):
            counts = [len(directive["Metrics"]) for directive in event.content.get("CloudWatchMetrics", ())]
            most[each.target.job.name] = max([most.get(each.target.job.name, 0), *counts])
    for job, count in most.items():
        if count > MOST_METRICS:
            yield Finding(
                "too-many-metrics",
                ERROR,
                f"job {job!r} puts {count} metrics into one directive; the service rejects more than"
                f" {MOST_METRICS}, and the agent does not split",
                "select fewer metrics, or share them out over declarations with different label_matchers",
            )
