"""A meta label that Kubernetes discovery does not give, so that the rule reads an empty value."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent import discovery
from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import WARNING, Finding, listed
from gpuworkshop.cwagent.scrape_config import ScrapeJob
from gpuworkshop.metrics.near import near


def unknown_meta_label(case: Case) -> Iterator[Finding]:
    """One finding a rule of a job that discovers by Kubernetes alone."""
    for job in _jobs(case):
        given = {name for each in case.followed if each.target.job is job for name in each.target.discovered}
        for place, rule in enumerate(job.rules):
            names = [name for name in rule.source_labels if name.startswith("__meta_") and name not in given]
            unknown = [name for name in names if not discovery.is_known(name, job.roles)]
            if unknown:
                yield Finding(
                    "unknown-meta-label",
                    WARNING,
                    f"relabel_configs[{place}] of job {job.name!r} reads {listed(unknown)}, which discovery"
                    f" by role {', '.join(job.roles)} does not give: the value is empty",
                    _fix(unknown[0], job, rule.target_label),
                )


def _jobs(case: Case) -> list[ScrapeJob]:
    jobs = {each.target.job.name: each.target.job for each in case.of_interest}
    return [job for job in jobs.values() if job.roles and not job.other_discovery]


def _fix(name: str, job: ScrapeJob, target: str) -> str:
    if target == "pod":
        return (
            "drop the rule: mended, it would put the exporter's own pod in the place of the workload's"
            " (or set honor_labels: true)"
        )
    alike = near(name, [label for role in job.roles for label in discovery.LABELS.get(role, ())])
    return f"did you mean {' or '.join(alike)}?" if alike else "take the rule out"
