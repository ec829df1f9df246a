"""A label matcher that matches nothing, or that does not even compile."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.declarations import Declaration
from gpuworkshop.cwagent.findings.finding import ERROR, Finding, listed
from gpuworkshop.cwagent.pipeline import DROPPED, Series


def matcher_matches_nothing(case: Case) -> Iterator[Finding]:
    """Declarations that no series of the page would ever fall under."""
    series = [each for each in case.all_series() if each.outcome != DROPPED]
    for declaration in case.agent.in_use if case.agent else ():
        selected = [each for each in series if declaration.selects(each.name)]
        if series and not selected:
            yield _nothing_selected(declaration)
        elif selected and not any(declaration.matches(each.labels) for each in selected):
            yield _nothing_matched(declaration, selected)


def _nothing_matched(declaration: Declaration, selected: list[Series]) -> Finding:
    sources = ", ".join(declaration.source_labels)
    seen = listed(repr(declaration.joined(each.labels)) for each in selected)
    absent = [
        name for name in declaration.source_labels if not any(each.labels.get(name) for each in selected)
    ]
    why = f"; no series has the label {', '.join(absent)}, which counts as empty" if absent else ""
    return Finding(
        "matcher-matches-nothing",
        ERROR,
        f"label_matcher {declaration.pattern!r} of {declaration.title} matches nothing: the value of"
        f" [{sources}] is {seen}{why}",
        "match a label that the series have, such as job, or set that label by a relabel rule"
        f" (target_label: {absent[0] if absent else declaration.source_labels[0]})",
    )


def _nothing_selected(declaration: Declaration) -> Finding:
    return Finding(
        "matcher-matches-nothing",
        ERROR,
        f"metric_selectors of {declaration.title} select no metric of the page:"
        f" {listed(text for text, _ in declaration.selectors) or 'none compiles'}",
        "look at the names on the page: releases of the exporter differ, and from 4.9 on most names are new",
    )


def matcher_does_not_compile(case: Case) -> Iterator[Finding]:
    """One finding a matcher; it is worst where it was the only one."""
    if case.agent is None:
        return
    for declaration in case.agent.declarations:
        if not declaration.matcher_error or declaration.skipped:
            continue
        effect = (
            "and as no other declaration is left, every metric goes out, with every label as a dimension"
            if case.agent.every_label
            else "so that the declaration is left out"
        )
        yield Finding(
            "matcher-does-not-compile",
            ERROR,
            f"label_matcher {declaration.pattern!r} of {declaration.title} does not compile"
            f" ({declaration.matcher_error}), {effect}",
            "it is a regular expression, not a shell's pattern: write .* for anything",
        )
