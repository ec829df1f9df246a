"""The lab as the rest of the kit sees it: up and down, nodes, what runs on GPUs, history, addresses."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gpuworkshop.deploy import clusters, manifests
from gpuworkshop.deploy.kubectl import Kubectl
from gpuworkshop.errors import LabNotRunning, PrometheusError
from gpuworkshop.lab import cluster_access, services
from gpuworkshop.lab.nodes import cluster_config
from gpuworkshop.lab.prometheus import backfill
from gpuworkshop.lab.simulation import SimulatedNode
from gpuworkshop.processes import groups
from gpuworkshop.processes.groups import ServiceStatus
from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

GROUP = "lab"
LEAD_S = 20.0  # Prometheus starts, and acts on what it discovers after 5 s
START_TIMEOUT_S = 120.0  # the first start may fetch Prometheus
NODES_READY_S = 60
NODE_GROUP = "eks.amazonaws.com/nodegroup"


class Lab:
    """The rehearsal lab of one checkout."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._folder = cluster_access.folder(settings)

    def up(self) -> list[ServiceStatus]:
        """Bring the lab up, or find it up; a cluster that has no nodes yet gets the lab's own.

        Fetches Prometheus and kubectl first, so that their progress can be seen.
        """
        for tool in ("prometheus", "kubectl"):
            find_or_fetch(tool, self.settings)
        started = groups.ensure(GROUP, self.settings, timeout_s=START_TIMEOUT_S)
        if not self.kubectl.get("nodes"):
            self.create()
        return started

    def down(self) -> None:
        """End the lab's processes. The cluster's objects, and all stored samples, stay."""
        groups.stop_group(GROUP, self.settings)

    def reset(self) -> None:
        """End the lab, and forget everything of it."""
        self.down()
        if self._folder.path.exists():
            shutil.rmtree(self._folder.path)

    def status(self) -> list[ServiceStatus]:
        """The lab's services as they are now."""
        return groups.status_of(GROUP, self.settings)

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig."""
        return self._folder.kubeconfig

    @property
    def kubectl(self) -> Kubectl:
        """kubectl on the cluster."""
        return Kubectl(find_or_fetch("kubectl", self.settings), self.kubeconfig)

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

    @property
    def charts_url(self) -> str:
        """Where the chart repositories are. Raises LabNotRunning."""
        for status in self.status():
            if status.name == "cluster" and status.health_url and status.state != "stopped":
                return status.health_url.removesuffix("/healthz")
        raise LabNotRunning(
            "the lab's cluster is not running",
            step="looking for the charts",
            todo="type ./run.sh in a terminal, or gpuworkshop lab up",
        )

    def create(self, config_file: Path | None = None) -> str:
        """Make the nodes of an eksctl ClusterConfig (default: the lab's own), with what EKS puts on them.

        Nodes that are there already stay. Returns what kubectl says.
        """
        config = cluster_config.read(config_file or clusters.path("lab"))
        nodes = cluster_config.node_objects(config)
        equipment = ("eks-addons", "device-plugin", "dcgm-exporter")
        said = self.kubectl.apply([*nodes, *(each for name in equipment for each in manifests.load(name))])
        self.kubectl.wait("node", "--all", condition="Ready", timeout_s=NODES_READY_S)
        shutil.copyfile(config_file or clusters.path("lab"), self._folder.path / "cluster-config.yaml")
        return said

    def scale(self, node_group: str, count: int) -> str:
        """Give a node group another number of nodes; what kubectl says."""
        config = cluster_config.read(self.cluster_config)
        wanted = cluster_config.node_objects(config, {node_group: count}, only=node_group)
        names = {node["metadata"]["name"] for node in wanted}
        there = self.kubectl.get("nodes", "-l", f"{NODE_GROUP}={node_group}")
        said = self.kubectl.apply(wanted) if wanted else ""
        for node in there:
            if node["metadata"]["name"] not in names:
                said += self.kubectl.delete("node", node["metadata"]["name"])
        return said

    @property
    def cluster_config(self) -> Path:
        """The ClusterConfig whose nodes the cluster has; the lab's own before any was made."""
        made = self._folder.path / "cluster-config.yaml"
        return made if made.exists() else clusters.path("lab")

    def nodes(self) -> list[SimulatedNode]:
        """The GPU nodes, with what their kubelets have noted of their GPUs."""
        return [SimulatedNode(path) for path in sorted(self._folder.nodes.glob("*.yaml"))]

    def backfill(self, pods: Sequence[tuple[str, str]], seconds: float) -> None:
        """Give pods, by namespace and name, a history of `seconds`, as if they had run for so long.

        A Prometheus that runs is restarted for it, since it looks for new blocks when it starts; it is back,
        and scrapes, when this returns. The history goes on until that has surely happened.
        """
        services.check_disk(self.settings)
        now = time.time()
        promtool = find_or_fetch("promtool", self.settings)
        for node in self.nodes():
            if gpus := node.entries(pods):
                span = (now - seconds, now + LEAD_S)
                backfill(services.files(self.settings), promtool, gpus, node.name, span)
        if any(s.name == "prometheus" and s.pid for s in self.status()):
            groups.restart("prometheus", self.settings)
            self._await_scrape(time.time())

    def _await_scrape(self, since: float) -> None:
        """Wait until Prometheus has stored a scrape from after `since`; it has no event for that."""
        from gpuworkshop.metrics import PrometheusReader  # the supervisor, too, imports this file

        deadline = time.monotonic() + LEAD_S
        with PrometheusReader(self.prometheus_url) as reader:
            while time.monotonic() < deadline:
                with suppress(PrometheusError):  # it may be restarting once more, for somebody else's history
                    newest = reader.latest("timestamp(up)", empty_ok=True).to_numpy()
                    if newest.size and newest.max() > since:
                        return
                time.sleep(0.2)
