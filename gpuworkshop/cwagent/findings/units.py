"""Metrics without a unit."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import WARNING, Finding, listed
from gpuworkshop.cwagent.pipeline import DROPPED


def no_units(case: Case) -> Iterator[Finding]:
    """One finding for all that a declaration selects and `metric_unit` does not name."""
    if case.agent is None:
        return
    names = {each.name: None for each in case.all_series() if each.outcome != DROPPED}
    selected = [name for name in names if any(each.selects(name) for each in case.agent.in_use)]
    if without := [name for name in selected if not case.agent.units.get(name)]:
        yield Finding(
            "no-units",
            WARNING,
            f"metric_unit does not name {listed(without)}: CloudWatch shows them without a unit",
            'add them to emf_processor.metric_unit, such as {"DCGM_FI_DEV_GPU_UTIL": "Percent"}; the name'
            " must be the very same",
        )
