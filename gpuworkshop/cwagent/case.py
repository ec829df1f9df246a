"""All that the findings look at: the metrics page, both configurations, and what becomes of each series.

A target that is dropped is followed too, as if it were kept: `Followed.series` is then what would be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpuworkshop.cwagent.agent_config import AgentConfig
from gpuworkshop.cwagent.labels import has_gpu
from gpuworkshop.cwagent.pipeline import Scrape, Series, process
from gpuworkshop.cwagent.scrape_config import ScrapeJob
from gpuworkshop.cwagent.targets import Target, follow_targets
from gpuworkshop.metrics.exposition import Family

DEFAULT_WAVE_S = 40.0
"""The period of the workshop's load: 20 s on, 20 s off."""

_FOR_GPUS = re.compile(r"dcgm|gpu|nvidia", re.IGNORECASE)


@dataclass(frozen=True)
class Followed:
    """A target and its series at its second scrape, when counters have a value."""

    target: Target
    series: list[Series]


@dataclass(frozen=True)
class Case:
    """What is to be explained. `served_at` is the page's address, "" for a file; `wave_s` a load's period."""

    families: Sequence[Family]
    jobs: Sequence[ScrapeJob]
    followed: Sequence[Followed]
    agent: AgentConfig | None = None
    served_at: str = ""
    wave_s: float = DEFAULT_WAVE_S

    @cached_property
    def of_interest(self) -> list[Followed]:
        """Targets that are kept, and those of jobs that are meant for GPUs; all if there is none of these.

        A configuration has jobs for other programs too. That they drop the exporter is as it should be.
        """
        found = [each for each in self.followed if each.target.kept or is_for_gpus(each.target.job)]
        return found or list(self.followed)

    @property
    def has_gpus(self) -> bool:
        """Whether the page is one of GPUs."""
        return any(has_gpu(sample.labels) for family in self.families for sample in family.samples)

    def all_series(self) -> Iterator[Series]:
        """The series of every target of interest."""
        for each in self.of_interest:
            yield from each.series


def build_case(
    families: Sequence[Family],
    jobs: Sequence[ScrapeJob],
    agent: AgentConfig | None = None,
    *,
    discovered: Sequence[Mapping[str, str]] = (),
    served_at: str = "",
    wave_s: float = DEFAULT_WAVE_S,
) -> Case:
    """Follow every target and series. `discovered` are targets as discovery would give them."""
    followed = [follow(target, families, agent) for target in follow_targets(jobs, discovered)]
    return Case(families, jobs, followed, agent, served_at, wave_s)


def follow(target: Target, families: Sequence[Family], agent: AgentConfig | None) -> Followed:
    """The second of two scrapes of the page."""
    first = process(Scrape(target, families, 0), agent)
    time_ms = min(int(target.job.interval_s * 1000), 60_000)
    return Followed(target, process(Scrape(target, families, time_ms), agent, first.baseline).series)


def is_for_gpus(job: ScrapeJob) -> bool:
    """Whether its name or one of its rules speaks of GPUs."""
    words = [job.name, *(rule.pattern for rule in job.rules)]
    return any(_FOR_GPUS.search(word) for word in words)
