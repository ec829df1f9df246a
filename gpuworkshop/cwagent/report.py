"""An explanation as plain text, with colours where the terminal has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from gpuworkshop.cwagent.cost import Cost
from gpuworkshop.cwagent.explanation import Explanation, Row
from gpuworkshop.cwagent.findings import ERROR
from gpuworkshop.cwagent.findings.finding import listed
from gpuworkshop.cwagent.targets import Target

COLOURS = {
    "kept": "green",
    "metric": "green",
    "log": "yellow",
    "dropped": "red",
    "error": "red",
    "warning": "yellow",
}


def lines(explanation: Explanation) -> Iterator[str]:
    """The report, line by line. Series with the same fate share a line."""
    yield click.style("Targets", bold=True)
    for target in explanation.targets:
        yield _target(target)
    if not explanation.targets:
        yield "  none"
    yield click.style("Series", bold=True)
    for rows in _alike(explanation.rows):
        yield from _series(rows)
    yield click.style("Findings", bold=True)
    for finding in explanation.findings:
        yield f"  {_word(finding.severity)}{finding.code}: {finding.message}"
        yield f"           What to do: {finding.fix}"
    if not explanation.findings:
        yield "  none"
    if explanation.cost:
        yield from _cost(explanation.cost)


def _word(word: str) -> str:
    return click.style(f"{word:<9}", fg=COLOURS[word], bold=word == ERROR)


def _target(target: Target) -> str:
    if target.kept:
        return f"  {_word('kept')}{target.url} by job {target.job.name}"
    return f"  {_word('dropped')}{target.discovered.get('__address__', 'a target')} by {target.rule}"


def _alike(rows: Iterable[Row]) -> list[list[Row]]:
    together: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        together.setdefault((row.job, row.outcome, row.reason, row.namespace, row.dimensions), []).append(row)
    return list(together.values())


def _series(rows: list[Row]) -> Iterator[str]:
    first = rows[0]
    yield f"  {_word(first.outcome)}{len(rows)} of job {first.job}: {listed(row.name for row in rows)}"
    yield f"           {first.reason}"
    if first.namespace:
        sets = "; ".join(", ".join(names) or "no dimension" for names in first.dimensions)
        units = listed(row.unit or "none" for row in rows)
        yield f"           in {first.namespace}, by {sets}; units: {units}"


def _cost(cost: Cost) -> Iterator[str]:
    yield click.style("Cost", bold=True)
    yield (
        f"  {cost.metrics} metrics of {cost.gpus} GPUs and {cost.pods} pods: ${cost.metrics_month:,.2f} a"
        f" month; {cost.log_gigabytes_month:g} GB of logs: ${cost.logs_month:,.2f}; together"
        f" ${cost.total_month:,.2f} a month, ${cost.total_hour:g} an hour"
    )
    yield f"  prices of {cost.region}, {cost.source}, checked {cost.checked}; without the free tier"
