"""The GPU Operator and the sharing of a GPU, on a real lab, by real helm and kubectl."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpuworkshop.deploy import manifests
from gpuworkshop.workshop import Workshop

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]
METRICS = "/api/v1/namespaces/gpu-operator/services/nvidia-dcgm-exporter:9400/proxy/metrics"


@pytest.fixture(scope="module")
def operated(ws: Workshop) -> Iterator[Workshop]:
    """The lab, with the GPU Operator."""
    step = ws.step("gpu-operator")
    assert not step.check().ok
    applied = step.apply()
    assert applied.ok, str(applied)
    yield ws
    assert step.reset().ok
    assert not step.check().ok
    assert ws.target.kubectl.get("daemonset", "dcgm-exporter", "-n", "gpu-metrics")


def test_the_operators_exporter_takes_the_place_of_the_lonely_one(operated: Workshop) -> None:
    step = operated.step("gpu-operator")
    assert step.apply().ok
    verdict = step.verify()
    assert verdict.ok, str(verdict)
    assert verdict.seen.startswith("8 GPUs")
    assert not operated.target.kubectl.get("daemonset", "dcgm-exporter", "-n", "gpu-metrics")
    frame = operated.prometheus.latest("count by (gpu) (DCGM_FI_DEV_GPU_UTIL)")
    assert frame.to_numpy().max() == 1


def test_two_exporters_are_noticed_and_mended(operated: Workshop) -> None:
    operated.target.kubectl.apply(manifests.load("dcgm-exporter"))
    step = operated.step("gpu-operator")
    assert "doubles" in step.check().seen
    assert step.apply().ok


def test_edited_counters_take_effect_and_stay(operated: Workshop) -> None:
    kubectl = operated.target.kubectl
    counters = manifests.load("counters")
    rows = "DCGM_FI_DEV_GPU_UTIL, gauge, a\nDCGM_FI_PROF_SM_OCCUPANCY, gauge, b\n"
    counters[1]["data"] = {"dcgm-metrics.csv": rows}
    kubectl.apply(counters)
    kubectl.run("rollout", "restart", "daemonset/nvidia-dcgm-exporter", "-n", "gpu-operator")
    kubectl.run("rollout", "status", "daemonset/nvidia-dcgm-exporter", "-n", "gpu-operator", "--timeout=60s")
    assert operated.step("gpu-operator").apply().ok
    said = kubectl.run("get", "--raw", METRICS)
    names = {line.split()[2] for line in said.splitlines() if line.startswith("# TYPE DCGM")}
    assert names == {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_SM_OCCUPANCY"}
    kubectl.apply(manifests.load("counters"))


def test_two_pods_share_a_gpu_and_each_has_its_own_share(operated: Workshop) -> None:
    for name in ("time-slicing", "two-pods", "pod-shares"):
        step = operated.step(name)
        assert not step.check().ok
        applied = step.apply()
        assert applied.ok, str(applied)
        assert step.apply().ok
        verdict = step.verify()
        assert verdict.ok, str(verdict)
    shares = operated.prometheus.latest('pod_gpu_memory_used_bytes{namespace="sharing"}')
    assert sorted({str(label[1]).split("-")[0] for label in shares.columns}) == ["early", "late"]
    for name in ("pod-shares", "two-pods", "time-slicing"):
        reset = operated.step(name).reset()
        assert reset.ok, str(reset)
        assert not operated.step(name).check().ok
    assert operated.step("device-plugin").verify().ok
