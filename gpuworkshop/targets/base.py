"""What a notebook may ask of any target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gpuworkshop.deploy.helm import Helm
from gpuworkshop.deploy.kubectl import Kubectl
from gpuworkshop.processes.groups import ServiceStatus
from gpuworkshop.versions import Chart


@dataclass(frozen=True)
class PodOnGpu:
    """A pod, and the index of a GPU that it holds on its node."""

    namespace: str
    name: str
    node: str
    gpu: int


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

    @property
    def kubectl(self) -> Kubectl:
        """kubectl, on its cluster."""

    @property
    def helm(self) -> Helm:
        """helm, on its cluster."""

    def add_chart(self, chart: Chart) -> str:
        """Make the chart's repository known to helm; the name by which helm then finds the chart."""

    def chart_commands(self, chart: Chart) -> Sequence[str]:
        """The command lines that do the same."""

    def scale(self, node_group: str, count: int) -> None:
        """Give a node group so many nodes, and wait until they are ready."""

    def scale_command(self, node_group: str, count: int) -> str:
        """The command line that does the same."""

    @property
    def cluster_config(self) -> Path:
        """The eksctl ClusterConfig of its cluster."""

    def create_cluster(self) -> None:
        """Have the nodes of the cluster configuration."""

    def create_command(self) -> str:
        """The command line that does the same."""

    def pods_on_gpus(self) -> Sequence[PodOnGpu]:
        """The pods that hold a GPU now."""

    def backfill(self, pods: Sequence[PodOnGpu], seconds: float) -> bool:
        """Give the pods a history of so many seconds, where that can be had; False where it cannot."""
