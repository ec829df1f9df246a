"""Steps about the cluster itself: its nodes, and the device plugin that makes GPUs allocatable."""

from __future__ import annotations

from typing import Any

from gpuworkshop.deploy import manifests
from gpuworkshop.targets import Target
from gpuworkshop.workshop.steps import Step, told
from gpuworkshop.workshop.verdict import Verdict

GPU = "nvidia.com/gpu"
PLUGIN = "nvidia-device-plugin-daemonset"
SYSTEM = "kube-system"
READY_S = 60


class ClusterStep(Step):
    """A step that asks the cluster by kubectl, and has no data of its own."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def verify(self) -> Verdict:
        """The cluster's own word is the proof."""
        return self.check()

    def give_history(self, seconds: float) -> None:
        """Nothing: there is no data."""

    def await_check(self, missing: str, patience_s: float) -> Verdict:
        """Ask until the check passes: a cluster comes to be so a moment after it was told."""
        return self.await_proof(
            lambda: verdict.seen if (verdict := self.check()).ok else "", missing, patience_s
        )

    def nodes(self) -> list[dict[str, Any]]:
        """The cluster's nodes."""
        return list(self._target.kubectl.get("nodes"))


class Nodes(ClusterStep):
    """The nodes of the cluster configuration are there, and ready."""

    name = "cluster"
    title = "The cluster's nodes are ready"

    @told
    def check(self) -> Verdict:
        """Ask for the nodes' conditions."""
        nodes = self.nodes()
        late = [node["metadata"]["name"] for node in nodes if not _is_ready(node)]
        if not nodes or late:
            seen = f"not ready: {', '.join(late)}" if late else "there are no nodes"
            return self.failed(seen, f"ws.step({self.name!r}).apply()")
        types = [node["metadata"]["labels"].get("node.kubernetes.io/instance-type", "?") for node in nodes]
        return self.passed(f"{len(nodes)} nodes are ready: {', '.join(types)}")

    def bring_about(self) -> None:
        """Have the nodes made."""
        self._target.create_cluster()

    @told
    def reset(self) -> Verdict:
        """Delete the nodes; what ran on them is gone."""
        said = self._target.kubectl.delete("nodes", "--all")
        return self.passed(said.strip() or "there were none")

    def text(self) -> str:
        """The command, and the cluster configuration."""
        config = self._target.cluster_config.read_text(encoding="utf-8")
        return f"{self._target.create_command()}\n\n{config}"


class DevicePlugin(ClusterStep):
    """The device plugin runs on each GPU node, so that pods can ask for GPUs."""

    name = "device-plugin"
    title = "The device plugin offers the GPUs"

    @told
    def check(self) -> Verdict:
        """Ask how many GPUs pods may ask for."""
        offers = {node["metadata"]["name"]: _gpus(node) for node in self.nodes()}
        count = sum(offers.values())
        if not count:
            return self.failed(f"no node offers {GPU}", f"ws.step({self.name!r}).apply()")
        holders = sum(1 for gpus in offers.values() if gpus)
        return self.passed(f"{count} × {GPU} can be asked for, on {holders} of {len(offers)} nodes")

    def bring_about(self) -> None:
        """Apply its DaemonSet, and wait until the GPUs are offered."""
        kubectl = self._target.kubectl
        kubectl.apply(manifests.load("device-plugin"))
        kubectl.run("rollout", "status", f"daemonset/{PLUGIN}", "-n", SYSTEM, f"--timeout={READY_S}s")

    def verify(self) -> Verdict:
        """Wait until the nodes offer GPUs: their kubelets report them a moment after the plugin is up."""
        return self.await_check("no GPUs", READY_S)

    @told
    def reset(self) -> Verdict:
        """Delete its DaemonSet, as the 2023 walkthrough has it. Pods that run keep their GPUs."""
        said = self._target.kubectl.delete("daemonset", PLUGIN, "-n", SYSTEM)
        self._target.kubectl.run(
            "wait", "pods", "-n", SYSTEM, "-l", f"name={PLUGIN}", "--for=delete", "--timeout=30s"
        )
        return self.passed(said.strip() or "it was not there")

    def text(self) -> str:
        """The command, and the manifest."""
        path = manifests.path("device-plugin")
        return f"kubectl apply --server-side -f '{path}'\n\n{path.read_text(encoding='utf-8')}"


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node.get("status", {}).get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _gpus(node: dict[str, Any]) -> int:
    return int(node.get("status", {}).get("allocatable", {}).get(GPU, 0))
