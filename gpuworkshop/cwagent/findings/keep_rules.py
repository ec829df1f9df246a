"""A job without any rule that keeps or drops, so that it scrapes everything that it discovers."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import WARNING, Finding

NARROWING = ("keep", "drop", "keepequal", "dropequal")


def no_keep_rule(case: Case) -> Iterator[Finding]:
    """One finding a job that discovers by Kubernetes, in whatever namespaces."""
    for job in {each.target.job.name: each.target.job for each in case.of_interest}.values():
        if job.roles and not any(rule.action in NARROWING for rule in job.rules):
            narrowed = any(section.get("selectors") for section in job.discovery)
            if not narrowed:
                yield Finding(
                    "no-keep-rule",
                    WARNING,
                    f"job {job.name!r} has no rule that keeps or drops: it scrapes every"
                    f" {' and '.join(job.roles)} that it discovers, whatever runs there",
                    "keep the exporter alone: source_labels: [__meta_kubernetes_pod_container_name], "
                    " action: keep, regex: .*dcgm-exporter",
                )
