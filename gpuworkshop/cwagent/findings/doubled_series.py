"""Series doubled: two jobs scrape the same page."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from gpuworkshop.cwagent.case import Case, Followed
from gpuworkshop.cwagent.findings.finding import ERROR, Finding, listed
from gpuworkshop.cwagent.pipeline import DROPPED


def series_doubled(case: Case) -> Iterator[Finding]:
    """Pairs of jobs that keep a target at the same address and path, with names in common."""
    kept = [each for each in case.followed if each.target.kept]
    seen = set()
    for one, other in combinations(kept, 2):
        jobs = one.target.job.name, other.target.job.name
        if one.target.url != other.target.url or jobs[0] == jobs[1] or jobs in seen:
            continue
        if both := [name for name in _names(one) if name in _names(other)]:
            seen.add(jobs)
            yield Finding(
                "series-doubled",
                ERROR,
                f"jobs {jobs[0]!r} and {jobs[1]!r} both scrape {one.target.url}: {listed(both)} come twice,"
                " and sums are twice too high",
                f"keep one: let {jobs[1]!r} drop this exporter, or delete one of them",
            )


def _names(followed: Followed) -> dict[str, None]:
    return dict.fromkeys(each.name for each in followed.series if each.outcome != DROPPED)
