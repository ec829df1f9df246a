"""The exporter as a process on a machine with GPUs of its own, which NVIDIA's binding plays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from exporter_kubelet import FakeKubelet, holding
from exporter_process import run, serving

POWER = "DCGM_FI_DEV_POWER_USAGE"

# A GPU, and one that is cut in two.
MODULE = """
import sys
from exporter_fake_nvml import FakeGpu, FakeMig, FakeNvml
migs = [FakeMig("MIG-3", 3), FakeMig("MIG-5", 5)]
cut = FakeGpu("GPU-b", mig_mode=1, migs=migs, gpm_on_migs={{3: {{1: 50.0}}, 5: {{}}}})
fake = FakeNvml(FakeGpu("GPU-a"), cut)
fake.fails = {{{fails}}}
sys.modules[__name__] = fake
"""


@pytest.fixture
def binding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that a new process imports as the binding."""
    folders = [tmp_path, Path(__file__).parent, *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, folders)))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    module = tmp_path / "pynvml.py"
    module.write_text(MODULE.format(fails=""), "utf-8")
    return module


@pytest.mark.usefixtures("binding")
def test_without_a_file_the_machines_own_gpus_are_served() -> None:
    with serving(None) as exporter:
        exporter.until(lambda: exporter.value("DCGM_FI_PROF_GR_ENGINE_ACTIVE", gpu="0") == 0.999)
        assert exporter.value(POWER, gpu="0", UUID="GPU-a", pci_bus_id="00000000:8D:00.0") == 690.123
        # prometheus_client renames counters.
        assert exporter.value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total", gpu="0") == 3_431_092
        assert exporter.value("DCGM_FI_DEV_FB_USED", GPU_I_ID="3", GPU_I_PROFILE="1g.18gb") == 1024
        assert exporter.value("DCGM_FI_DEV_GPU_UTIL", gpu="1") is None
        absent = exporter.value("gpuworkshop_field_unavailable", field="gpu_util_ratio", GPU_I_ID="5")
        assert absent == 1
        assert exporter.value("gpuworkshop_gpu_up", gpu="1") == 1
        assert exporter.value("gpuworkshop_simulated_info") is None


@pytest.mark.usefixtures("binding")
def test_the_page_for_people_lists_the_machines_gpus() -> None:
    with serving(None) as exporter:
        home = exporter.get("/")[1].decode()
    assert "GPU 0: NVIDIA H200, no pod" in home
    assert "GPU 1 1g.18gb 5: NVIDIA H200, no pod" in home


@pytest.mark.usefixtures("binding")
def test_the_kubelets_mig_devices_are_found_by_the_driver(tmp_path: Path) -> None:
    kubelet = FakeKubelet([holding("GPU-a", pod="whole"), holding("MIG-5", pod="part")])
    socket = tmp_path / "k.sock"
    with kubelet.serving(socket), serving(None, "--pod-resources-socket", str(socket)) as exporter:
        assert exporter.value(POWER, gpu="0", pod="whole") == 690.123
        assert exporter.value(POWER, GPU_I_ID="5", pod="part") == 690.123
        assert exporter.value(POWER, GPU_I_ID="3", pod="part") is None
        assert exporter.value("gpuworkshop_pod_mapping_unknown_mig_devices") == 0


def test_a_driver_that_is_not_there_is_said(binding: Path) -> None:
    binding.write_text(MODULE.format(fails='("nvmlInit", ""): "DRIVER_NOT_LOADED"'), "utf-8")
    ended = run()
    assert ended.returncode == 1
    assert "ExporterError: starting the exporter: NVML cannot read this machine's GPUs" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_the_binding_what_to_install_is_said(binding: Path) -> None:
    binding.write_text("raise ImportError('none')", "utf-8")
    ended = run()
    assert ended.returncode == 1
    assert "What to do: pip install 'gpuworkshop[exporter]'" in ended.stderr


@pytest.mark.usefixtures("binding")
def test_real_gpus_have_no_history() -> None:
    ended = run("--backfill", "1700000000", "1700000100")
    assert ended.returncode == 2
    assert "--backfill needs --gpus" in ended.stderr
