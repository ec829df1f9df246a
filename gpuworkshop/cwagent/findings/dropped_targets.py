"""A rule that drops every target of a job, so that nothing is scraped."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import ERROR, Finding, listed
from gpuworkshop.cwagent.targets import Target

FOR_DCGM = ".*dcgm-exporter"


def every_target_dropped(case: Case) -> Iterator[Finding]:
    """One finding a job of interest that keeps nothing."""
    jobs = {each.target.job.name: each.target.job for each in case.of_interest}
    for name in jobs:
        targets = [each.target for each in case.of_interest if each.target.job.name == name]
        if any(target.kept for target in targets):
            continue
        seen = "; ".join(dict.fromkeys(f"{target.rule} ({_saw(target)})" for target in targets))
        yield Finding(
            "every-target-dropped",
            ERROR,
            f"job {name!r} keeps no target, so that nothing is scraped. Dropped by {seen}",
            f"a regex must match the whole value, in the same case: for NVIDIA's exporter {FOR_DCGM!r}",
        )


def _saw(target: Target) -> str:
    """The values that the rule looked at. They may have been set by the rules before it."""
    if target.dropped_at is None:
        return "__address__ is empty"
    sources = target.job.rules[target.dropped_at].source_labels
    values = {**target.labels, **target.discovered}
    return listed(f"{name}={values.get(name, '')!r}" for name in sources) or "it has no source_labels"
