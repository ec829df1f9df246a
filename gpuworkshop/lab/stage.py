"""The lab as the rest of the kit sees it: up and down, nodes, what runs on GPUs, history, addresses."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpuworkshop.deploy import clusters, manifests
from gpuworkshop.deploy.helm import Helm
from gpuworkshop.deploy.kubectl import Kubectl
from gpuworkshop.errors import LabNotRunning, PrometheusError, ToolMissing
from gpuworkshop.lab import cluster_access, services
from gpuworkshop.lab.nodes import cluster_config
from gpuworkshop.lab.nodes.cluster_config import GROUP_LABEL, ClusterConfig
from gpuworkshop.lab.prometheus import backfill
from gpuworkshop.lab.simulation import SimulatedNode
from gpuworkshop.processes import groups
from gpuworkshop.processes.downloads import say
from gpuworkshop.processes.groups import ServiceStatus
from gpuworkshop.processes.state import replace_file
from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

GROUP = "lab"
LEAD_S = 20.0  # Prometheus starts, and acts on what it discovers after 5 s
START_TIMEOUT_S = 120.0  # the first start may fetch Prometheus
NODES_READY_S = 60
CONFIG_FILE = "cluster-config.yaml"
SIMULATED = "gpuworkshop.io/simulated=true"
OPERATORS_EXPORTER = "app=nvidia-dcgm-exporter"
# What tells nodes of one configuration from those of another, or of the same one before it was edited.
KIND_OF_NODE = (
    "alpha.eksctl.io/cluster-name",
    "topology.kubernetes.io/region",
    GROUP_LABEL,
    "node.kubernetes.io/instance-type",
)


class Lab:
    """The rehearsal lab of one checkout."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._folder = cluster_access.folder(settings)

    def up(self) -> list[ServiceStatus]:
        """Bring the lab up, or find it up; a cluster that has no nodes yet gets the lab's own.

        Fetches its tools first, so that their progress can be seen. Without helm it goes on: only some
        notebooks need it.
        """
        for tool in ("prometheus", "kubectl"):
            find_or_fetch(tool, self.settings)
        try:
            find_or_fetch("helm", self.settings)
        except ToolMissing as error:
            say(f"going on without helm, which the notebooks need that install a chart: {error}")
        started = groups.ensure(GROUP, self.settings, timeout_s=START_TIMEOUT_S)
        if not self.kubectl.get("nodes"):
            self.create()
        return started

    def down(self) -> int:
        """End the lab's processes; their number. The cluster's objects, and all stored samples, stay."""
        return groups.stop_group(GROUP, self.settings)

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
        """kubectl on the cluster. Raises LabNotRunning for a lab that was never up."""
        if not self.kubeconfig.exists():
            raise _not_running("the lab's cluster was never started", "looking for the cluster")
        return Kubectl(find_or_fetch("kubectl", self.settings), self.kubeconfig)

    @property
    def helm(self) -> Helm:
        """helm on the cluster, with repositories of the lab's own. Raises LabNotRunning."""
        home = self.settings.state / "helm"
        return Helm(find_or_fetch("helm", self.settings), self.kubectl.kubeconfig, home)

    @property
    def prometheus_url(self) -> str:
        """Where the lab's Prometheus answers. Raises LabNotRunning."""
        for status in self.status():
            if status.name == "prometheus" and status.url and status.state != "stopped":
                return status.url
        raise _not_running("the lab's Prometheus is not running", "looking for the lab")

    @property
    def charts_url(self) -> str:
        """Where the chart repositories are. Raises LabNotRunning."""
        for status in self.status():
            if status.name == "cluster" and status.health_url and status.state != "stopped":
                return status.health_url.removesuffix("/healthz")
        raise _not_running("the lab's cluster is not running", "looking for the charts")

    def create(self, config_file: Path | None = None) -> str:
        """Make the nodes of an eksctl ClusterConfig (default: the one that the lab has) ready, as EKS does.

        The lab is one cluster: nodes of another configuration go. Those of this one that are there stay, and
        so does their number, if a group was scaled up. Returns what kubectl says.
        """
        path = config_file or self.cluster_config
        config = cluster_config.read(path)
        nodes = cluster_config.node_objects(config)
        said = self._delete_nodes(self._foreign(config))
        equipment = ["eks-addons", "device-plugin"]
        if not self.kubectl.get("daemonset", "--all-namespaces", "-l", OPERATORS_EXPORTER):
            equipment.append("dcgm-exporter")  # a GPU with two of them would be there twice
        said += self.kubectl.apply([*nodes, *(each for name in equipment for each in manifests.load(name))])
        replace_file(self._folder.path / CONFIG_FILE, path.read_text(encoding="utf-8"))
        self._await_ready(map(_name, nodes))
        return said

    def scale(self, node_group: str, count: int) -> str:
        """Give a node group another number of nodes, and wait until they are ready; what kubectl says."""
        config = cluster_config.read(self.cluster_config)
        nodes = cluster_config.node_objects(config, {node_group: count}, only=node_group)
        wanted = {_name(node): node for node in nodes}
        there = {_name(node) for node in self.kubectl.get("nodes", "-l", f"{GROUP_LABEL}={node_group}")}
        missing = [node for name, node in wanted.items() if name not in there]
        said = self.kubectl.apply(missing) if missing else ""
        said += self._delete_nodes(sorted(there - wanted.keys()))
        self._await_ready(wanted)
        return said

    def _foreign(self, config: ClusterConfig) -> list[str]:
        """The simulated nodes that are not as this configuration would have them."""
        own = {(config.name, config.region, group.name, group.instance_type) for group in config.groups}
        nodes = self.kubectl.get("nodes", "-l", SIMULATED)
        return [_name(n) for n in nodes if tuple(map(n["metadata"]["labels"].get, KIND_OF_NODE)) not in own]

    def _delete_nodes(self, names: Sequence[str]) -> str:
        return self.kubectl.delete("node", *names) if names else ""

    def _await_ready(self, names: Iterable[str]) -> None:
        if names := list(names):
            self.kubectl.wait("node", *names, condition="Ready", timeout_s=NODES_READY_S)

    @property
    def cluster_config(self) -> Path:
        """The ClusterConfig whose nodes the cluster has; the lab's own before any was made."""
        made = self._folder.path / CONFIG_FILE
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


def _name(node: Mapping[str, Any]) -> str:
    return str(node["metadata"]["name"])


def _not_running(seen: str, step: str) -> LabNotRunning:
    todo = "type ./run.sh or gpuworkshop lab up in a terminal, or run ws.step('lab').apply() in a notebook"
    return LabNotRunning(seen, step=step, todo=todo)
