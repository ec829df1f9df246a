"""Steps about one GPU that two pods share: time-slicing, and two loads with different rhythms."""

from __future__ import annotations

from typing import Any

from gpuworkshop.deploy import charts, manifests, values
from gpuworkshop.targets import Target
from gpuworkshop.workshop.cluster_steps import GPU, SYSTEM, ClusterStep
from gpuworkshop.workshop.exporter_steps import OPERATOR, GpuOperator
from gpuworkshop.workshop.steps import told
from gpuworkshop.workshop.verdict import Verdict

GROUP = "sharing"
GROUP_SELECTOR = f"eks.amazonaws.com/nodegroup={GROUP}"
NAMESPACE = "sharing"
# Seconds on and off. No whole multiple of each other, so that each pair of states comes about.
RHYTHMS = {"early": (20, 20), "late": (15, 15)}
READY_S = 60


class TimeSlicing(ClusterStep):
    """A node whose only GPU is offered twice."""

    name = "time-slicing"
    title = "One GPU is offered twice"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._operator = GpuOperator(target)

    @told
    def check(self) -> Verdict:
        """Ask the node how many GPUs pods may ask for."""
        nodes = self._target.kubectl.get("nodes", "-l", GROUP_SELECTOR)
        todo = f"ws.step({self.name!r}).apply()"
        if not nodes:
            return self.failed(f"the node group {GROUP} has no node", todo)
        offered = int(nodes[0].get("status", {}).get("allocatable", {}).get(GPU, 0))
        name = nodes[0]["metadata"]["name"]
        if offered < 2:
            return self.failed(f"{name} offers {offered} × {GPU}", todo)
        return self.passed(f"{name} offers its one GPU as {offered} × {GPU}")

    def bring_about(self) -> None:
        """Scale the node group, and let the operator's device plugin take the place of eksctl's."""
        self._target.scale(GROUP, 1)
        self._target.kubectl.delete_manifests(manifests.load("device-plugin"))
        self._operator.upgrade(OPERATOR, "time-slicing")
        self.await_check("the GPU is not offered twice yet", READY_S)

    @told
    def reset(self) -> Verdict:
        """Take the node away, and give the device plugin of eksctl its place back."""
        if self._target.helm.releases(OPERATOR):
            self._operator.upgrade(OPERATOR)
        self._target.kubectl.apply(manifests.load("device-plugin"))
        self._target.scale(GROUP, 0)
        return self.passed(f"the node group {GROUP} has no node, and GPUs are whole again")

    def text(self) -> str:
        """The commands, and the values."""
        path = values.path("time-slicing")
        lines = [
            self._target.scale_command(GROUP, 1),
            f"kubectl delete -n {SYSTEM} daemonset nvidia-device-plugin-daemonset",
            self._operator.upgrade_command(OPERATOR, "time-slicing"),
        ]
        return "\n".join([*lines, "", path.read_text(encoding="utf-8")])


class TwoPods(ClusterStep):
    """Two pods with a GPU each, as they think: it is the same one."""

    name = "two-pods"
    title = "Two pods share one GPU"

    @told
    def check(self) -> Verdict:
        """Ask for the pods, and the target which GPU each holds."""
        placed = [pod for pod in self._target.pods_on_gpus() if pod.namespace == NAMESPACE]
        if len(placed) < len(RHYTHMS):
            seen = f"{len(placed)} of {len(RHYTHMS)} pods hold a GPU"
            return self.failed(seen, f"ws.step({self.name!r}).apply(), after ws.step('time-slicing')")
        if len({(pod.node, pod.gpu) for pod in placed}) > 1:
            return self.failed("they are on different GPUs", f"ws.step({self.name!r}).reset(), then apply()")
        names = " and ".join(pod.name for pod in placed)
        return self.passed(f"{names} hold GPU {placed[0].gpu} of {placed[0].node}")

    def bring_about(self) -> None:
        """Install gpu-burn twice, each with a rhythm of its own."""
        chart = str(charts.path("gpu-burn"))
        for release, (on, off) in RHYTHMS.items():
            self._target.helm.upgrade(release, chart, NAMESPACE, values=_load(on, off), timeout_s=READY_S)

    @told
    def reset(self) -> Verdict:
        """Uninstall both."""
        for release in RHYTHMS:
            self._target.helm.uninstall(release, NAMESPACE)
        said = self._target.kubectl.delete("namespace", NAMESPACE)
        return self.passed(said.strip() or "there was nothing to delete")

    def text(self) -> str:
        """The commands."""
        chart = charts.path("gpu-burn")
        node = f"'nodeSelector.eks\\.amazonaws\\.com/nodegroup={GROUP}'"
        return "\n".join(
            f"helm upgrade --install {release} '{chart}' -n {NAMESPACE} --create-namespace \\\n"
            f"  --set onSeconds={on} --set offSeconds={off} --set {node}"
            for release, (on, off) in RHYTHMS.items()
        )


def _load(on: int, off: int) -> dict[str, Any]:
    group, _, name = GROUP_SELECTOR.partition("=")
    return {"onSeconds": on, "offSeconds": off, "nodeSelector": {group: name}}
