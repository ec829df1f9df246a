"""Series that CloudWatch cannot tell apart, for want of the GPU among the dimensions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.cost import identities_of
from gpuworkshop.cwagent.declarations import Declaration
from gpuworkshop.cwagent.findings.finding import ERROR, Finding, listed
from gpuworkshop.cwagent.labels import GPU, PODS, has_gpu
from gpuworkshop.cwagent.pipeline import DROPPED, METRIC, Series

CODE = "pods-merged"
FIX = "add gpu (or UUID) to the dimension set"


def pods_merged(case: Case) -> Iterator[Finding]:
    """Declarations that name pods but no GPU; and series of one scrape that fall together in every set."""
    if case.agent is None:
        return
    series = [each for each in case.all_series() if each.outcome != DROPPED and has_gpu(each.labels)]
    without = [each for each in case.agent.in_use if _names_no_gpu(each, series)]
    for declaration in without:
        sets = "; ".join(", ".join(names) for names in _of_pods(declaration))
        yield Finding(
            CODE,
            ERROR,
            f"{declaration.title} has pods as a dimension, but no label that tells GPUs apart ({sets}): all"
            " GPUs of a pod become one metric",
            FIX,
        )
    merged = (
        []
        if without
        else [name for each in case.of_interest for name in _merged(each.series, case.agent.namespace)]
    )
    if merged:
        yield Finding(
            CODE,
            ERROR,
            f"several series of {listed(merged)} have the same values in all their dimensions: they become"
            " one metric",
            FIX,
        )


def _names_no_gpu(declaration: Declaration, series: list[Series]) -> bool:
    sets = _of_pods(declaration)
    selects = any(declaration.selects(each.name) for each in series)
    return bool(sets) and selects and not any(set(names) & set(GPU) for names in sets)


def _of_pods(declaration: Declaration) -> list[tuple[str, ...]]:
    return [names for names in declaration.dimensions if set(names) & set(PODS)]


def _merged(series: list[Series], namespace: str) -> Iterator[str]:
    found = [(each.name, identities_of(each, namespace)) for each in series if each.outcome == METRIC]
    counts = Counter(identity for _, identities in found for identity in identities)
    for name, identities in found:
        if all(counts[identity] > 1 for identity in identities):
            yield name
