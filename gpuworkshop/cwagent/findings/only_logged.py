"""Series that become no metric, but are logged and billed all the same."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import WARNING, Finding, listed
from gpuworkshop.cwagent.pipeline import LOG


def only_logged(case: Case) -> Iterator[Finding]:
    """One finding for all that no selector selects."""
    if case.agent is None:
        return
    declarations = case.agent.in_use
    logged = dict.fromkeys(each.name for each in case.all_series() if each.outcome == LOG)
    if names := [name for name in logged if not any(each.selects(name) for each in declarations)]:
        yield Finding(
            "only-logged",
            WARNING,
            f"{listed(names)} become no metric, but are written to the logs, which cost money: declarations"
            " choose metrics, not logs",
            "keep the names you want by metric_relabel_configs (source_labels: [__name__], action: keep)",
        )
