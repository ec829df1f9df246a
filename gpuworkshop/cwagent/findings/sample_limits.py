"""More samples than the job allows: the whole scrape then fails."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import ERROR, Finding
from gpuworkshop.cwagent.metric_types import NO_TYPE
from gpuworkshop.cwagent.pipeline import DROPPED


def sample_limit_exceeded(case: Case) -> Iterator[Finding]:
    """One finding a job. What its metric rules drop does not count."""
    worst: dict[str, tuple[int, int]] = {}
    for each in case.of_interest:
        job = each.target.job
        count = sum(series.outcome != DROPPED or series.reason == NO_TYPE for series in each.series)
        if job.sample_limit and count > max(job.sample_limit, worst.get(job.name, (0, 0))[0]):
            worst[job.name] = count, job.sample_limit
    for name, (count, limit) in worst.items():
        yield Finding(
            "sample-limit-exceeded",
            ERROR,
            f"job {name!r} allows {limit} samples, but the page has {count}: the whole scrape fails",
            "raise sample_limit, or keep fewer series by metric_relabel_configs",
        )
