"""Steps about what reads the GPUs: NVIDIA's exporter by the GPU Operator, ours for pods that share one."""

from __future__ import annotations

import shlex
from typing import Any

from gpuworkshop import versions
from gpuworkshop.deploy import charts, manifests, values
from gpuworkshop.metrics import PrometheusReader
from gpuworkshop.targets import Target
from gpuworkshop.workshop.cluster_steps import GPU, ClusterStep
from gpuworkshop.workshop.steps import told
from gpuworkshop.workshop.verdict import Verdict

OPERATOR = "gpu-operator"
EXPORTER = "nvidia-dcgm-exporter"
ALONE = ("daemonset", "dcgm-exporter", "-n", "gpu-metrics")
OUR_EXPORTER = "gpuworkshop-exporter"
SHARES = "gpu-metrics"
READY_S = 60.0
FRESH = "(time() - timestamp(DCGM_FI_DEV_GPU_UTIL)) < 5"


class GpuOperator(ClusterStep):
    """The GPU Operator's exporter runs on each GPU node, in the place of the one that stood alone."""

    name = "gpu-operator"
    title = "The GPU Operator's exporter runs on each GPU node"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._chart = versions.chart(OPERATOR)

    @told
    def check(self) -> Verdict:
        """Ask for the exporter's pods, and whether another exporter reads the same GPUs."""
        kubectl = self._target.kubectl
        found = kubectl.get("daemonset", EXPORTER, "-n", OPERATOR)
        todo = f"ws.step({self.name!r}).apply()"
        if not found:
            return self.failed(f"there is no DaemonSet {EXPORTER} in {OPERATOR}", todo)
        if kubectl.get(*ALONE):
            return self.failed("dcgm-exporter in gpu-metrics reads the same GPUs, which doubles them", todo)
        wanted = sum(1 for node in self.nodes() if _has_gpus(node))
        ready = int(found[0].get("status", {}).get("numberReady", 0))
        if ready < max(wanted, 1):
            return self.failed(f"{ready} of {wanted} GPU nodes have it ready", todo)
        return self.passed(f"{EXPORTER} is ready on {ready} of {wanted} GPU nodes")

    def bring_about(self) -> None:
        """Install the chart, or upgrade it; a list of counters that the learner has edited stays."""
        kubectl = self._target.kubectl
        if not kubectl.get("configmap", "dcgm-metrics", "-n", OPERATOR):
            kubectl.apply(manifests.load("counters"))
        kubectl.delete(*ALONE)
        self.upgrade(OPERATOR)
        self.await_check("its exporter is not ready", READY_S)

    def upgrade(self, *names: str) -> None:
        """Have the release with these files of values, each over the one before it."""
        chart = self._target.add_chart(self._chart)
        files = list(map(values.path, names))
        self._target.helm.upgrade(OPERATOR, chart, OPERATOR, files=files, version=self._chart.version)

    def upgrade_command(self, *names: str) -> str:
        """The command line that does the same."""
        files = " ".join(f"--values '{values.path(name)}'" for name in names)
        return (
            f"helm upgrade --install {OPERATOR} {self._chart.repository}/{self._chart.name} \\\n"
            f"  --namespace {OPERATOR} --version {self._chart.version} {files} --wait"
        )

    def verify(self) -> Verdict:
        """Prove from Prometheus that each GPU has a sample from this very moment."""
        if not (ready := self.check()).ok:
            return ready
        return self.await_proof(self._all_fresh, "not every GPU has a fresh sample", READY_S)

    @told
    def reset(self) -> Verdict:
        """Uninstall it, and have the exporter that stands alone again."""
        said = self._target.helm.uninstall(OPERATOR, OPERATOR)
        self._target.kubectl.delete("namespace", OPERATOR)
        self._target.kubectl.apply(manifests.load("dcgm-exporter"))
        return self.passed(said.strip() or "it was not there")

    def text(self) -> str:
        """The commands, and the values."""
        path = values.path(OPERATOR)
        lines = [
            f"kubectl apply --server-side -f '{manifests.path('counters')}'",
            f"kubectl delete {shlex.join(ALONE)}",
            *self._target.chart_commands(self._chart),
            self.upgrade_command(OPERATOR),
        ]
        return "\n".join([*lines, "", path.read_text(encoding="utf-8")])

    def _all_fresh(self) -> str:
        gpus = sum(int(node["status"]["capacity"].get(GPU, 0)) for node in self.nodes() if _has_gpus(node))
        with PrometheusReader(self._target.prometheus_url) as reader:
            found = reader.latest(f"count by (node, gpu) ({FRESH})", empty_ok=True).shape[1]
        return f"{found} GPUs have samples less than 5 s old" if found and found >= gpus else ""


class PodShares(ClusterStep):
    """The workshop's own exporter runs beside the operator's, for each pod's share of a GPU."""

    name = "pod-shares"
    title = "Each pod's share of its GPU is measured"

    @told
    def check(self) -> Verdict:
        """Ask for its pods."""
        found = self._target.kubectl.get("daemonset", OUR_EXPORTER, "-n", SHARES)
        status = found[0].get("status", {}) if found else {}
        wanted, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
        if not wanted or ready < wanted:
            return self.failed(
                f"{ready} of {wanted} pods are ready" if found else f"there is no {OUR_EXPORTER} in {SHARES}",
                f"ws.step({self.name!r}).apply()",
            )
        return self.passed(f"{OUR_EXPORTER} is ready on {ready} nodes")

    def bring_about(self) -> None:
        """Install its chart, or upgrade it."""
        chart = str(charts.path(OUR_EXPORTER))
        self._target.helm.upgrade(OUR_EXPORTER, chart, SHARES, files=[values.path("sharing-exporter")])

    def verify(self) -> Verdict:
        """Prove from Prometheus that pods have shares."""
        if not (ready := self.check()).ok:
            return ready
        return self.await_proof(self._shares, "Prometheus has no share of any pod yet", READY_S)

    @told
    def reset(self) -> Verdict:
        """Uninstall it."""
        said = self._target.helm.uninstall(OUR_EXPORTER, SHARES)
        return self.passed(said.strip() or "it was not there")

    def text(self) -> str:
        """The command, and the values."""
        path = values.path("sharing-exporter")
        command = (
            f"helm upgrade --install {OUR_EXPORTER} '{charts.path(OUR_EXPORTER)}' \\\n"
            f"  --namespace {SHARES} --create-namespace --values '{path}' --wait"
        )
        return f"{command}\n\n{path.read_text(encoding='utf-8')}"

    def _shares(self) -> str:
        with PrometheusReader(self._target.prometheus_url) as reader:
            found = reader.latest('pod_gpu_memory_used_bytes{pod!=""}', empty_ok=True)
        return f"{found.shape[1]} pods have a share" if found.shape[1] else ""


def _has_gpus(node: dict[str, Any]) -> bool:
    return int(node.get("status", {}).get("capacity", {}).get(GPU, 0)) > 0
