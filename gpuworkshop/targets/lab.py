"""The target `lab`: the embedded rehearsal, with no account, no GPU, no cost and no Docker."""

from __future__ import annotations

from collections.abc import Sequence

from gpuworkshop.lab import Lab, Pod, PodOnGpu
from gpuworkshop.processes.groups import ServiceStatus
from gpuworkshop.settings import Settings


class LabTarget:
    """The rehearsal lab behind the interface that all targets share."""

    name = "lab"

    def __init__(self, settings: Settings) -> None:
        self._lab = Lab(settings)

    def up(self) -> Sequence[ServiceStatus]:
        """Start the lab's processes, or find them running."""
        return self._lab.up()

    def down(self) -> None:
        """End the lab's processes."""
        self._lab.down()

    def status(self) -> Sequence[ServiceStatus]:
        """The lab's services as they are now."""
        return self._lab.status()

    @property
    def prometheus_url(self) -> str:
        """Where the lab's Prometheus answers. Raises LabNotRunning."""
        return self._lab.prometheus_url

    def run_pod(self, pod: Pod) -> None:
        """Run a pod on a free simulated GPU."""
        self._lab.run_pod(pod)

    def delete_pod(self, pod: Pod) -> bool:
        """Delete the pod; False if it did not run."""
        return self._lab.delete_pod(pod)

    def pods(self) -> Sequence[PodOnGpu]:
        """The pods on the simulated GPUs."""
        return self._lab.pods()

    def describe(self, pods: Sequence[Pod]) -> str:
        """The entries in the file that tells the simulated node what runs on it."""
        return self._lab.describe(pods)

    def backfill(self, pods: Sequence[Pod], seconds: float) -> bool:
        """Make a history from the trace; every sample of it is marked as back-filled."""
        self._lab.backfill(pods, seconds)
        return True
