"""The lab as the rest of the kit sees it: up and down, pods with a load, history, addresses."""

from __future__ import annotations

import time
from collections.abc import Sequence

from gpuworkshop.errors import LabNotRunning
from gpuworkshop.lab import services
from gpuworkshop.lab.prometheus import ScrapeTarget, backfill
from gpuworkshop.lab.simulation import Pod, PodOnGpu
from gpuworkshop.metrics import PrometheusReader
from gpuworkshop.processes import groups
from gpuworkshop.processes.groups import ServiceStatus
from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

GROUP = "lab"
LEAD_S = 20.0  # Prometheus starts, and acts on what it discovers after 5 s
START_TIMEOUT_S = 120.0  # the first start may fetch Prometheus


class Lab:
    """The rehearsal lab of one checkout."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._node = services.node(settings)

    def up(self) -> list[ServiceStatus]:
        """Bring the lab up, or find it up. Fetches Prometheus first, so that its progress can be seen."""
        find_or_fetch("prometheus", self.settings)
        return groups.ensure(GROUP, self.settings, timeout_s=START_TIMEOUT_S)

    def down(self) -> None:
        """End the lab's processes. What runs on the simulated GPUs, and all stored samples, stay."""
        groups.stop_group(GROUP, self.settings)

    def status(self) -> list[ServiceStatus]:
        """The lab's services as they are now."""
        return groups.status_of(GROUP, self.settings)

    @property
    def prometheus_url(self) -> str:
        """Where the lab's Prometheus answers. Raises LabNotRunning."""
        for status in self.status():
            if status.name == "prometheus" and status.url and status.state != "stopped":
                return status.url
        raise LabNotRunning(
            "the lab's Prometheus is not running",
            step="looking for the lab",
            todo="type ./run.sh in a terminal, or run ws.step('lab').apply() here",
        )

    def run_pod(self, pod: Pod) -> int:
        """Run a pod on a free simulated GPU; returns the GPU's index."""
        return self._node.run(pod)

    def delete_pod(self, pod: Pod) -> bool:
        """Delete a pod; False if it did not run."""
        return self._node.delete(pod.namespace, pod.name)

    def pods(self) -> list[PodOnGpu]:
        """The pods that run now, or will when the lab is up."""
        return self._node.pods()

    def describe(self, pods: Sequence[Pod]) -> str:
        """What `run_pod` writes, and where."""
        return f"# in {self._node.path}\n{self._node.entries(pods)}"

    def backfill(self, pods: Sequence[Pod], seconds: float) -> None:
        """Give `pods` a history of `seconds`, as if they had run for so long.

        A Prometheus that runs is restarted for it, since it looks for new blocks when it starts; it is back,
        and scrapes, when this returns. The history goes on until that has surely happened.
        """
        services.check_disk(self.settings)
        now = time.time()
        promtool = find_or_fetch("promtool", self.settings)
        target = ScrapeTarget("", services.NODE)
        gpus = self._node.entries(pods)
        backfill(services.files(self.settings), promtool, gpus, target, (now - seconds, now + LEAD_S))
        if any(s.name == "prometheus" and s.pid for s in self.status()):
            groups.restart("prometheus", self.settings)
            self._await_scrape(time.time())

    def _await_scrape(self, since: float) -> None:
        """Wait until Prometheus has stored a scrape from after `since`; it has no event for that."""
        deadline = time.monotonic() + LEAD_S
        with PrometheusReader(self.prometheus_url) as reader:
            while time.monotonic() < deadline:
                newest = reader.latest("timestamp(up)", empty_ok=True).to_numpy()
                if newest.size and newest.max() > since:
                    return
                time.sleep(0.2)
