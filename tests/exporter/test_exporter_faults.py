"""The whole process when a driver's call never returns; and what promtool says of all that it serves."""

from __future__ import annotations

import os
import subprocess
import urllib.error
from pathlib import Path

import pytest
import yaml
from exporter_kubelet import FakeKubelet, holding
from exporter_process import Exporter, serving

from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

HANGING = """
import sys, threading
from exporter_fake_nvml import FakeGpu, FakeNvml

class Hanging(FakeNvml):
    def nvmlDeviceGetPowerUsage(self, handle):
        if self.calls["nvmlDeviceGetPowerUsage"] > 3:
            threading.Event().wait(60)
        return super().nvmlDeviceGetPowerUsage(handle)

sys.modules[__name__] = Hanging(FakeGpu("GPU-a"))
"""


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A binding whose fourth reading never ends."""
    folders = [tmp_path, Path(__file__).parent, *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, folders)))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (tmp_path / "pynvml.py").write_text(HANGING, "utf-8")


def health(exporter: Exporter) -> int:
    try:
        return exporter.get("/health")[0]
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.usefixtures("hanging")
def test_a_call_that_never_returns_delays_no_scrape_and_not_the_end() -> None:
    with serving(None) as exporter:
        assert exporter.value("DCGM_FI_DEV_POWER_USAGE", gpu="0") is not None
        taken = exporter.value("gpuworkshop_sample_timestamp_seconds")
        exporter.until(lambda: health(exporter) == 503)
        told = {sample.name for sample in exporter.samples()}
        assert not [name for name in told if name.startswith("DCGM")]
        assert (exporter.value("gpuworkshop_sample_timestamp_seconds") or 0) >= (taken or 0)
    assert exporter.process.returncode == 0


ODD = 'a"b\\c\nd é'


@pytest.mark.real
def test_promtool_complains_of_nothing_but_dcgms_own_names(tmp_path: Path, settings: Settings) -> None:
    gpus = tmp_path / "gpus.yaml"
    held = [{"namespace": "default", "pod": "burn", "container": ODD, "load": "training"}]
    gpus.write_text(
        yaml.safe_dump([{"index": 0, "model": "H200", "pods": held}, {"index": 1, "model": "L4"}]), "utf-8"
    )
    with serving(gpus, "--per-process", "--extended") as exporter:
        exporter.until(lambda: exporter.value("pod_gpu_sm_active_ratio", pod="burn") is not None)
        assert exporter.value("DCGM_FI_DEV_GPU_UTIL", container=ODD) is not None
        body = exporter.get()[1]
    promtool = find_or_fetch("promtool", settings)
    done = subprocess.run(
        [promtool, "check", "metrics"], input=body, capture_output=True, timeout=60, check=False
    )
    complaints = (done.stdout + done.stderr).decode().splitlines()
    assert complaints
    # The label modelName is DCGM's as well.
    dcgms = [line for line in complaints if line.startswith("DCGM_FI_") or line.endswith("not 'camelCase'")]
    assert [line for line in complaints if line not in dcgms] == []


def test_a_thousand_pods_on_one_gpu_are_each_shown(tmp_path: Path) -> None:
    gpus, socket = tmp_path / "gpus.yaml", tmp_path / "kubelet.sock"
    gpus.write_text("- {index: 0, model: H200, uuid: GPU-1}\n", "utf-8")
    pods = [holding(f"GPU-1::{number}", pod=f"pod-{number}") for number in range(1000)]
    with FakeKubelet(pods).serving(socket), serving(gpus, "--pod-resources-socket", str(socket)) as exporter:
        names = {
            sample.labels["pod"] for sample in exporter.samples() if sample.name == "DCGM_FI_DEV_GPU_UTIL"
        }
    assert names == {f"pod-{number}" for number in range(1000)}
