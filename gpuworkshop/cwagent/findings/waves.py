"""A scrape interval that cannot show a load which goes on and off: the samples show another wave.

A wave of period T, sampled every S seconds, needs S < T/2. Else its picture has another period: that of the
difference between 1/T and the nearest multiple of 1/S.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import WARNING, Finding

STORED_S = 60
"""CloudWatch keeps what the agent sends at this resolution."""


def wave_not_showable(case: Case) -> Iterator[Finding]:
    """Jobs that scrape too seldom for the load's wave."""
    intervals = {each.target.job.name: each.target.job.interval_s for each in case.of_interest}
    for job, interval_s in intervals.items():
        if case.has_gpus and interval_s >= case.wave_s / 2:
            yield Finding(
                "wave-not-showable",
                WARNING,
                f"job {job!r} scrapes every {interval_s:g} s, which cannot show a load with a period of"
                f" {case.wave_s:g} s: {_looks(case.wave_s, interval_s)}",
                f"scrape more often than every {case.wave_s / 2:g} s; CloudWatch keeps {STORED_S} s, so give"
                " it loads that last for minutes, and look at Minimum and Maximum",
            )


def apparent_period(wave_s: float, interval_s: float) -> float:
    """The period that the samples show, in seconds; infinite where they show a line."""
    cycles = interval_s / wave_s
    off = abs(cycles - round(cycles))
    return interval_s / off if off > 1e-9 else float("inf")


def _looks(wave_s: float, interval_s: float) -> str:
    period_s = apparent_period(wave_s, interval_s)
    return "it looks steady" if period_s == float("inf") else f"it looks like one of {period_s:.0f} s"
