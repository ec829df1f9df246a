"""What a notebook may ask of any target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gpuworkshop.lab import Pod, PodOnGpu
from gpuworkshop.processes.groups import ServiceStatus


class Target(Protocol):
    """A cluster with GPUs, or a rehearsal of one.

    Every method may be called twice; each raises a WorkshopError that says what to do when it cannot do
    its work.
    """

    name: str

    def up(self) -> Sequence[ServiceStatus]:
        """Bring it up, or find it up."""

    def down(self) -> None:
        """End what `up` started; nothing stored is lost."""

    def status(self) -> Sequence[ServiceStatus]:
        """Its services as they are now."""

    @property
    def prometheus_url(self) -> str:
        """Where its Prometheus answers."""

    def run_pod(self, pod: Pod) -> None:
        """Run a pod with one GPU."""

    def delete_pod(self, pod: Pod) -> bool:
        """Delete the pod; False if it did not run."""

    def pods(self) -> Sequence[PodOnGpu]:
        """The pods with GPUs that run now."""

    def describe(self, pods: Sequence[Pod]) -> str:
        """The very text that brings the pods about."""

    def backfill(self, pods: Sequence[Pod], seconds: float) -> bool:
        """Give the pods a history of so many seconds, where that can be had; False where it cannot."""
