"""A dimension that no series has, so that its whole set is skipped."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import ERROR, Finding
from gpuworkshop.cwagent.labels import WORKLOAD
from gpuworkshop.cwagent.pipeline import DROPPED


def dimension_on_no_series(case: Case) -> Iterator[Finding]:
    """Names in dimension sets that are a label of none of the series that the declaration selects."""
    series = [each for each in case.all_series() if each.outcome != DROPPED]
    for declaration in case.agent.in_use if case.agent else ():
        selected = [each.labels for each in series if declaration.selects(each.name)]
        have = {name for labels in selected for name, value in labels.items() if value}
        if not have & set(WORKLOAD):
            have |= set(WORKLOAD)  # all GPUs idle at the moment: their labels come and go
        for name in dict.fromkeys(name for names in declaration.dimensions for name in names):
            if selected and name not in have:
                yield Finding(
                    "dimension-on-no-series",
                    ERROR,
                    f"no series has the label {name!r}, which {declaration.title} wants as a dimension: a set"
                    " with a missing label is skipped",
                    f"set {name} by a relabel rule, or take it out of the set; mind capitals and exported_…",
                )
