"""Idle GPUs lost: without a pod a series lacks labels that every dimension set asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.declarations import Declaration
from gpuworkshop.cwagent.findings.finding import ERROR, Finding, listed
from gpuworkshop.cwagent.labels import WORKLOAD, has_gpu, without_workload
from gpuworkshop.cwagent.pipeline import DROPPED, Scrape, Series, process
from gpuworkshop.metrics.exposition import Family


def idle_gpus_lost(case: Case) -> Iterator[Finding]:
    """Declarations under which the same GPUs, were they idle, would give no data point."""
    if case.agent is None:
        return
    page = as_if_idle(case.families)
    idle = [
        series
        for each in case.of_interest
        for series in process(Scrape(each.target, page), case.agent).series
        if series.outcome != DROPPED
    ]
    for declaration in case.agent.in_use:
        lost = [each for each in idle if declaration.selects(each.name) and _is_lost(declaration, each)]
        if lost:
            names = {name for names in declaration.dimensions for name in names} & set(WORKLOAD)
            yield Finding(
                "idle-gpus-lost",
                ERROR,
                f"a GPU that no pod uses has no {', '.join(sorted(names))}, which every dimension set of"
                f" {declaration.title} asks for: {listed(each.name for each in lost)} show a gap, not 0",
                "add a second dimension set without them, such as [ClusterName, Service, NodeName, gpu]",
            )


def as_if_idle(families: Sequence[Family]) -> list[Family]:
    """The page as it would be if no pod used a GPU."""
    return [
        Family(
            family.name,
            family.type,
            samples=[
                msgspec.structs.replace(sample, labels=without_workload(sample.labels))
                for sample in family.samples
                if has_gpu(sample.labels)
            ],
        )
        for family in families
    ]


def _is_lost(declaration: Declaration, series: Series) -> bool:
    """Whether each set asks for a label of the workload's that it lacks."""
    lacking = [name for name in WORKLOAD if not series.labels.get(name)]
    sets = declaration.dimensions
    return bool(sets) and all(any(name in lacking for name in names) for names in sets)
