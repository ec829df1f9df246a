"""What the agent forgives in silence while it reads its configuration, and should not."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import ERROR, WARNING, Finding

FIXES = {
    "no-prometheus": "put the pipeline under logs.metrics_collected.prometheus",
    "wrong-shape": "look at that line: the agent's schema wants another kind of value there",
    "declaration-skipped": "give the declaration both source_labels and metric_selectors",
    "selector-does-not-compile": "it is a regular expression, not a shell's pattern: write .* for anything",
    "dimensions-missing": 'add dimensions, a list of lists: [["ClusterName", "pod", "gpu"]]',
    "dimensions-not-nested": 'write a list of lists: [["instance"]], not ["instance"]',
    "too-many-dimensions": "take names out of the set",
    "separator-ignored": "let the label_matcher expect ; between the values",
}
MILD = ("separator-ignored",)


def agent_faults(case: Case) -> Iterator[Finding]:
    """One finding a fault, with its line. Matchers that do not compile have a finding of their own."""
    for fault in case.agent.faults if case.agent else ():
        if fix := FIXES.get(fault.code):
            where = f"line {fault.line}: " if fault.line else ""
            yield Finding(fault.code, WARNING if fault.code in MILD else ERROR, f"{where}{fault.seen}", fix)
