"""What becomes of a discovered target: its job's defaults, its rules, and the address that is then scraped.

A target that a rule drops is followed to the end of the rules all the same: so that what is wrong behind
that rule is told at once, and not one fault a day.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuworkshop.cwagent import discovery
from gpuworkshop.cwagent.relabelling import run
from gpuworkshop.cwagent.scrape_config import ScrapeJob

DEFAULT_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True)
class Target:
    """A target of `job`: what discovery said of it, and its labels after the rules, without those in `__`.

    `dropped_at` is the place of the rule that drops it; scheme, address and path are those after the rules.
    """

    job: ScrapeJob
    discovered: Mapping[str, str]
    labels: Mapping[str, str]
    dropped_at: int | None
    scheme: str
    address: str
    path: str

    @property
    def kept(self) -> bool:
        """Whether it is scraped."""
        return self.dropped_at is None and bool(self.address)

    @property
    def url(self) -> str:
        """Where it is scraped."""
        return f"{self.scheme}://{self.address}{self.path}"

    @property
    def port(self) -> str:
        """The port that is scraped."""
        _, colon, port = self.address.rpartition(":")
        return port if colon and port.isdecimal() else DEFAULT_PORTS.get(self.scheme, "")

    @property
    def rule(self) -> str:
        """The rule that drops it, as messages name it; "" if it is kept."""
        if self.dropped_at is not None:
            rule = self.job.rules[self.dropped_at]
            return f"{self.job.name}: relabel_configs[{self.dropped_at}]: {rule}"
        return "" if self.address else f"{self.job.name}: no address is left"


def follow_target(job: ScrapeJob, discovered: Mapping[str, str]) -> Target:
    """One target through the rules of its job."""
    outcome = run(discovered, job.rules, defaults=_defaults(job), go_on=True)
    address = outcome.labels.get("__address__", "")
    shown = {name: value for name, value in outcome.labels.items() if not name.startswith("__")}
    shown.setdefault("instance", address)
    return Target(
        job,
        discovered,
        shown,
        outcome.dropped_at,
        outcome.labels.get("__scheme__", ""),
        address,
        outcome.labels.get("__metrics_path__", ""),
    )


def follow_targets(jobs: Iterable[ScrapeJob], given: Iterable[Mapping[str, str]]) -> list[Target]:
    """Every target of every job.

    `given` are discovered targets, each offered to every job, or to the one that its label `job` names.
    Without them each job gets its static ones, and what its discovery finds where NVIDIA's exporter runs.
    """
    given = list(given)
    return [
        follow_target(job, discovered)
        for job in jobs
        for discovered in (given or discovery.targets_of(job))
        if discovered.get("job", job.name) == job.name
    ]


def _defaults(job: ScrapeJob) -> dict[str, str]:
    parameters = {f"__param_{name}": values[0] for name, values in job.params.items() if values}
    return {
        "job": job.name,
        "__scrape_interval__": f"{job.interval_s:g}s",
        "__scrape_timeout__": f"{job.timeout_s:g}s",
        "__metrics_path__": job.metrics_path,
        "__scheme__": job.scheme,
        **parameters,
    }
