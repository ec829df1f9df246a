"""Metrics without a TYPE line, which the agent drops."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import ERROR, Finding, listed
from gpuworkshop.cwagent.metric_types import NO_TYPE


def no_type_line(case: Case) -> Iterator[Finding]:
    """One finding for all of them."""
    names = [each.sample.name for each in case.all_series() if each.reason == NO_TYPE]
    if names:
        yield Finding(
            "no-type-line",
            ERROR,
            f"{listed(names)} have no TYPE line on the page, and the agent drops what has none",
            "let the exporter write `# TYPE name gauge` before the samples; a proxy may have taken it out",
        )
