"""Steps that run pods with a GPU, and prove from Prometheus what their GPUs do."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pandas as pd

from gpuworkshop.errors import LabNotRunning, PrometheusError
from gpuworkshop.metrics import PrometheusReader, catalog
from gpuworkshop.targets import Pod, Target
from gpuworkshop.workshop.steps import Step
from gpuworkshop.workshop.verdict import Verdict

BUSY_PERCENT = 95.0
ARRIVAL_S = 20.0  # until a new pod's series has reached Prometheus
ON_S = OFF_S = 20

THREE_PODS = (
    Pod("language", "tuner-0", load={"kind": "matmul"}),
    Pod("vision", "detector-0", load={"kind": "memory-bound"}),
    Pod("robotics", "simulator-0", load={"kind": "pcie-bound"}),
)
GPU_BURN = Pod("default", "gpu-burn-7c9d8c6b5d-x2v8k", load={"kind": "wave", "on": ON_S, "off": OFF_S})


class PodsRunning(Step):
    """The given pods run, each on a GPU of its own."""

    pods: Sequence[Pod]

    def __init__(self, target: Target) -> None:
        self._target = target

    def check(self) -> Verdict:
        """Ask the target which pods have a GPU."""
        placed = {(p.pod.namespace, p.pod.name): p for p in self._target.pods()}
        missing = [_name(pod) for pod in self.pods if (pod.namespace, pod.name) not in placed]
        if missing:
            return self.failed(f"not running: {', '.join(missing)}", f"ws.step({self.name!r}).apply()")
        on = [f"{_name(p)} on GPU {placed[p.namespace, p.name].gpu}" for p in self.pods]
        return self.passed(", ".join(on))

    def bring_about(self) -> None:
        """Run each pod."""
        for pod in self.pods:
            self._target.run_pod(pod)

    def reset(self) -> Verdict:
        """Delete the pods."""
        gone = [_name(pod) for pod in self.pods if self._target.delete_pod(pod)]
        return self.passed(f"deleted {', '.join(gone)}" if gone else "there was nothing to delete")

    def text(self) -> str:
        """What the target writes for each pod."""
        return self._target.describe(self.pods)

    def give_history(self, seconds: float) -> None:
        """Back-fill those pods whose series do not reach back by half of `seconds` at least."""
        without = [pod for pod in self.pods if self._age(pod, seconds) < seconds / 2]
        if without:
            self._target.backfill(without, seconds)

    def utilisation(self, pod: Pod, seconds: float) -> pd.Series[float]:
        """GPU_UTIL of `pod` over the last `seconds`, in percent, one sample a second."""
        matchers = f'namespace="{pod.namespace}",pod="{pod.name}"'
        now = time.time()
        with PrometheusReader(self._target.prometheus_url) as reader:
            query = catalog.find("gpu_util").promql(matchers)
            frame = reader.range(query, now - seconds, now, 1.0, empty_ok=True)
        return frame.iloc[:, 0].dropna() if frame.shape[1] else pd.Series(dtype=float)

    def _age(self, pod: Pod, seconds: float) -> float:
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
    pods = THREE_PODS

    def verify(self) -> Verdict:
        """Prove from Prometheus that GPU_UTIL is at 100 % for each of them."""
        if not (running := self.check()).ok:
            return running
        return self.await_proof(
            self._all_busy, f"not all three pods are over {BUSY_PERCENT:.0f} % yet", ARRIVAL_S
        )

    def _all_busy(self) -> str:
        latest = {_name(pod): self.utilisation(pod, 5.0).tail(1) for pod in self.pods}
        if all(len(last) and last.iloc[0] >= BUSY_PERCENT for last in latest.values()):
            return "GPU_UTIL " + ", ".join(f"{name} {last.iloc[0]:.0f} %" for name, last in latest.items())
        return ""


class GpuBurn(PodsRunning):
    """A pod that loads its GPU for 20 s and rests for 20 s."""

    name = "gpu-burn"
    title = f"gpu-burn, {ON_S} s on and {OFF_S} s off"
    pods = (GPU_BURN,)

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
        period, duty = float(measured["period_s"].iloc[0]), 100 * float(measured["duty"].iloc[0])
        told = f"told {ON_S + OFF_S} s and {100 * ON_S / (ON_S + OFF_S):.0f} %"
        seen = f"period {period:.1f} s, duty {duty:.1f} % ({told})"
        agrees = abs(period - (ON_S + OFF_S)) <= 1 and abs(duty - 100 * ON_S / (ON_S + OFF_S)) <= 3
        return self.passed(seen) if agrees else self.failed(seen, "was the load changed in this time?")

    def _on_and_off(self) -> str:
        window = ON_S + OFF_S
        recent = self.utilisation(GPU_BURN, float(window))
        on, off = bool((recent > 80).any()), bool((recent < 20).any())
        return f"seen both busy and idle within {window} s" if on and off else ""


def _name(pod: Pod) -> str:
    return f"{pod.namespace}/{pod.name}"
