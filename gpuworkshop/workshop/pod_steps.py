"""Steps that run pods with a GPU, and prove from Prometheus what their GPUs do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

import pandas as pd

from gpuworkshop.deploy import manifests
from gpuworkshop.errors import KubectlError, LabNotRunning, PrometheusError
from gpuworkshop.metrics import PrometheusReader, catalog
from gpuworkshop.targets import PodOnGpu, Target
from gpuworkshop.workshop.steps import Step, told
from gpuworkshop.workshop.verdict import Verdict

BUSY_PERCENT = 95.0
ARRIVAL_S = 20.0  # until a new pod's series has reached Prometheus
READY_S = 60
ON_S = OFF_S = 20
PART = "app.kubernetes.io/part-of"


class PodsRunning(Step):
    """The pods of a manifest run, each on a GPU of its own; each carries the label `part-of` with `name`."""

    manifest: str
    count: int

    def __init__(self, target: Target) -> None:
        self._target = target

    @told
    def check(self) -> Verdict:
        """Ask the cluster for the pods, and the target which of them hold a GPU."""
        placed = {(p.namespace, p.name): p for p in self._target.pods_on_gpus()}
        running, waiting = [], []
        for pod in self._pods():
            key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
            if key in placed and pod["status"].get("phase") == "Running":
                running.append(f"{'/'.join(key)} on GPU {placed[key].gpu}")
            else:
                waiting.append(f"{'/'.join(key)} is {_why(pod)}")
        if len(running) < self.count:
            seen = "; ".join(waiting) or f"{len(running)} of {self.count} pods run"
            return self.failed(seen, f"ws.step({self.name!r}).apply()")
        return self.passed(", ".join(running))

    def bring_about(self) -> None:
        """Apply the manifest, and wait for the pods."""
        kubectl = self._target.kubectl
        kubectl.apply(manifests.load(self.manifest))
        with suppress(KubectlError):  # `apply` ends with the check, which says what each pod waits for
            kubectl.wait(
                "pod", "--all-namespaces", "-l", self._selector, condition="Ready", timeout_s=READY_S
            )

    @told
    def reset(self) -> Verdict:
        """Delete the pods."""
        said = self._target.kubectl.delete_manifests(manifests.load(self.manifest))
        return self.passed(said or "there was nothing to delete")

    def text(self) -> str:
        """The command, and the manifest."""
        path = manifests.path(self.manifest)
        return f"kubectl apply --server-side -f '{path}'\n\n{path.read_text(encoding='utf-8')}"

    def give_history(self, seconds: float) -> None:
        """Back-fill those pods whose series do not reach back by half of `seconds` at least."""
        without = [pod for pod in self.placed() if self._age(pod, seconds) < seconds / 2]
        if without:
            self._target.backfill(without, seconds)

    def placed(self) -> list[PodOnGpu]:
        """The step's pods that hold a GPU."""
        ours = {(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in self._pods()}
        return [pod for pod in self._target.pods_on_gpus() if (pod.namespace, pod.name) in ours]

    def utilisation(self, pod: PodOnGpu, seconds: float) -> pd.Series[float]:
        """GPU_UTIL of `pod` over the last `seconds`, in percent, one sample a second."""
        matchers = f'namespace="{pod.namespace}",pod="{pod.name}"'
        now = time.time()
        with PrometheusReader(self._target.prometheus_url) as reader:
            query = catalog.find("gpu_util").promql(matchers)
            frame = reader.range(query, now - seconds, now, 1.0, empty_ok=True)
        return frame.iloc[:, 0].dropna() if frame.shape[1] else pd.Series(dtype=float)

    @property
    def _selector(self) -> str:
        return f"{PART}={self.name}"

    def _pods(self) -> Sequence[dict[str, dict[str, str]]]:
        pods = self._target.kubectl.get("pods", "--all-namespaces", "-l", self._selector)
        return [pod for pod in pods if not pod["metadata"].get("deletionTimestamp")]

    def _age(self, pod: PodOnGpu, seconds: float) -> float:
        """How far back the pod's series reaches within the last `seconds`; 0 without one."""
        try:
            stored = self.utilisation(pod, seconds)
        except (PrometheusError, LabNotRunning):
            return 0.0
        return time.time() - stored.index[0].timestamp() if len(stored) else 0.0


class ThreePods(PodsRunning):
    """Three pods that all keep their GPU "100 % utilised"."""

    name = "three-pods"
    title = "Three pods, each with a GPU"
    manifest = "three-pods"
    count = 3

    def verify(self) -> Verdict:
        """Prove from Prometheus that GPU_UTIL is at 100 % for each of them."""
        if not (running := self.check()).ok:
            return running
        return self.await_proof(
            self._all_busy, f"not all three pods are over {BUSY_PERCENT:.0f} % yet", ARRIVAL_S
        )

    def _all_busy(self) -> str:
        latest = {_name(pod): self.utilisation(pod, 5.0).tail(1) for pod in self.placed()}
        if len(latest) >= self.count and all(
            len(last) and last.iloc[0] >= BUSY_PERCENT for last in latest.values()
        ):
            return "GPU_UTIL " + ", ".join(f"{name} {last.iloc[0]:.0f} %" for name, last in latest.items())
        return ""


class GpuBurn(PodsRunning):
    """A pod that loads its GPU for 20 s and rests for 20 s."""

    name = "gpu-burn"
    title = f"gpu-burn, {ON_S} s on and {OFF_S} s off"
    manifest = "gpu-burn"
    count = 1

    def verify(self) -> Verdict:
        """Prove from Prometheus that the GPU was seen both busy and idle within one period."""
        if not (running := self.check()).ok:
            return running
        patience = ARRIVAL_S + ON_S + OFF_S
        return self.await_proof(self._on_and_off, "not yet seen both on and off", patience)

    def compare(self, measured: pd.DataFrame) -> Verdict:
        """Compare `measured`, a row of `waves.table`, with what the load was told to do.

        Allowed are 1 s of the period and 3 points of the duty cycle.
        """
        if measured.empty or measured["period_s"].isna().all():
            return self.failed("no wave was measured", "query a longer time: at least three periods")
        row = self._row_of_the_pod(measured)
        period, duty = float(row["period_s"]), 100 * float(row["duty"])
        told = f"told {ON_S + OFF_S} s and {100 * ON_S / (ON_S + OFF_S):.0f} %"
        seen = f"period {period:.1f} s, duty {duty:.1f} % ({told})"
        agrees = abs(period - (ON_S + OFF_S)) <= 1 and abs(duty - 100 * ON_S / (ON_S + OFF_S)) <= 3
        return self.passed(seen) if agrees else self.failed(seen, "was the load changed in this time?")

    def _row_of_the_pod(self, measured: pd.DataFrame) -> pd.Series[float]:
        """The row of the pod that runs now; one that ran before may have a row too."""
        names = [pod.name for pod in self.placed()]
        of_it = [n for n, label in enumerate(measured.index) if any(name in str(label) for name in names)]
        return measured.iloc[of_it[0] if of_it else -1]

    def _on_and_off(self) -> str:
        window = ON_S + OFF_S
        for pod in self.placed():
            recent = self.utilisation(pod, float(window))
            if bool((recent > 80).any()) and bool((recent < 20).any()):
                return f"seen both busy and idle within {window} s"
        return ""


def _name(pod: PodOnGpu) -> str:
    return f"{pod.namespace}/{pod.name}"


def _why(pod: dict[str, dict[str, str]]) -> str:
    """The phase of a pod, and why it is not scheduled."""
    status: dict[str, object] = dict(pod.get("status") or {})
    conditions = status.get("conditions") or []
    assert isinstance(conditions, list)  # noqa: S101
    messages = [c.get("message", "") for c in conditions if c.get("status") == "False"]
    return " ".join([str(status.get("phase", "unknown")), *messages[:1]]).strip()
