"""The target `lab`: the embedded rehearsal, with no account, no GPU, no cost and no Docker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuworkshop.deploy.helm import Helm
from gpuworkshop.deploy.kubectl import Kubectl
from gpuworkshop.lab.stage import Lab
from gpuworkshop.processes.groups import ServiceStatus
from gpuworkshop.settings import Settings
from gpuworkshop.targets.base import PodOnGpu
from gpuworkshop.versions import Chart


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

    @property
    def kubectl(self) -> Kubectl:
        """kubectl, on the rehearsal cluster."""
        return self._lab.kubectl

    @property
    def helm(self) -> Helm:
        """helm, on the rehearsal cluster."""
        return self._lab.helm

    def add_chart(self, chart: Chart) -> str:
        """Know the lab's own repository, whose chart stands in for the real one."""
        self.helm.add_repository(chart.repository, self._repository(chart))
        return f"{chart.repository}/{chart.name}"

    def chart_commands(self, chart: Chart) -> Sequence[str]:
        """The lab's repository, and where the real one is."""
        return (
            f"# The lab's stand-in. The real chart is at {chart.url}",
            f"helm repo add {chart.repository} {self._repository(chart)} --force-update",
        )

    def _repository(self, chart: Chart) -> str:
        return f"{self._lab.charts_url}/{chart.repository}"

    def scale(self, node_group: str, count: int) -> None:
        """Make simulated nodes, or delete them."""
        self._lab.scale(node_group, count)

    def scale_command(self, node_group: str, count: int) -> str:
        """What scales the node group, on the command line."""
        return f"./exec.sh gpuworkshop lab scale --nodegroup {node_group} --nodes {count}"

    @property
    def cluster_config(self) -> Path:
        """The ClusterConfig whose nodes are simulated."""
        return self._lab.cluster_config

    def create_cluster(self) -> None:
        """Make the simulated nodes."""
        self._lab.create()

    def create_command(self) -> str:
        """What makes the nodes, on the command line."""
        return f"./exec.sh gpuworkshop lab create -f '{self._lab.cluster_config}'"

    def pods_on_gpus(self) -> Sequence[PodOnGpu]:
        """The pods on the simulated GPUs."""
        return [
            PodOnGpu(namespace, name, node.name, gpu)
            for node in self._lab.nodes()
            for namespace, name, gpu in node.pods()
        ]

    def backfill(self, pods: Sequence[PodOnGpu], seconds: float) -> bool:
        """Make a history from the trace; every sample of it is marked as back-filled."""
        self._lab.backfill([(pod.namespace, pod.name) for pod in pods], seconds)
        return True
