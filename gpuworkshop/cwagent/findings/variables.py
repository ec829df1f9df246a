"""`$1` in a replacement, which some releases of the agent take for a variable of the environment."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import WARNING, Finding, listed
from gpuworkshop.cwagent.rules import Rule


def dollar_in_replacement(case: Case) -> Iterator[Finding]:
    """One finding a job. Only the agent is concerned, not Prometheus."""
    if case.agent is None:
        return
    for job in {each.target.job.name: each.target.job for each in case.of_interest}.values():
        every = {"relabel_configs": job.rules, "metric_relabel_configs": job.metric_rules}
        places = [
            f"{name}[{place}] ({rule.replacement})"
            for name, rules in every.items()
            for place, rule in enumerate(rules)
            if _is_at_risk(rule)
        ]
        if places:
            yield Finding(
                "dollar-in-replacement",
                WARNING,
                f"{listed(places)} of job {job.name!r} write $ in a replacement; agents that are built on the"
                " OpenTelemetry receiver may read it as a variable of the environment, which is empty",
                "do without: $1 is the default; or try $$1 if the agent's release needs it",
            )


def _is_at_risk(rule: Rule) -> bool:
    return rule.replacement_given and "$" in rule.replacement.replace("$$", "")
