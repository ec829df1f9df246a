"""The exporter as a process beside a kubelet: `--pod-resources-socket`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from exporter_kubelet import FakeKubelet, holding
from exporter_process import COMMAND, Exporter, run, serving, write_gpus

UP = "gpuworkshop_pod_mapping_up"
POWER = "DCGM_FI_DEV_POWER_USAGE"


@pytest.fixture
def gpus(tmp_path: Path) -> Path:
    """Two GPUs, one busy with a pod that no kubelet knows, and one cut in two."""
    file_pod = {"pod": "of-the-file", "load": "matmul"}
    mig = [{"profile": "1g.18gb", "id": 3}, {"profile": "1g.18gb", "id": 4}]
    entries = [
        {"index": 0, "uuid": "GPU-0", "pods": [file_pod]},
        {"index": 1, "uuid": "GPU-1"},
        {"index": 2, "uuid": "GPU-2", "mig": mig},
    ]
    return write_gpus(tmp_path / "gpus.yaml", entries)


def holders(exporter: Exporter) -> set[tuple[str, str, str]]:
    """GPU, instance and pod of each row."""
    return {
        (sample.labels["gpu"], sample.labels.get("GPU_I_ID", ""), sample.labels.get("pod", ""))
        for sample in exporter.samples()
        if sample.name == POWER
    }


NOBODY = {("0", "", ""), ("1", "", ""), ("2", "3", ""), ("2", "4", "")}


def test_the_kubelet_names_the_pods_and_the_file_the_loads(gpus: Path, tmp_path: Path) -> None:
    kubelet = FakeKubelet([holding("GPU-0", pod="burn"), holding("MIG-GPU-2/4/0", pod="slice")])
    with kubelet.serving(tmp_path / "k.sock"):
        with serving(gpus, "--pod-resources-socket", str(tmp_path / "k.sock")) as exporter:
            assert holders(exporter) == {
                ("0", "", "burn"),
                ("1", "", ""),
                ("2", "3", ""),
                ("2", "4", "slice"),
            }
            busy, idle = exporter.value(POWER, gpu="0"), exporter.value(POWER, gpu="1")
            assert busy is not None
            assert idle is not None
            assert busy > 2 * idle
            kubelet.pods = [holding("GPU-1::0", pod="a"), holding("GPU-1::1", pod="b")]
            wanted = {("0", "", ""), ("1", "", "a"), ("1", "", "b"), ("2", "3", ""), ("2", "4", "")}
            exporter.until(lambda: holders(exporter) == wanted)
            assert exporter.value(UP) == 1
        assert len(set(kubelet.peers)) == 1


def test_a_kubelet_that_comes_later_and_goes_again(gpus: Path, tmp_path: Path) -> None:
    socket = tmp_path / "k.sock"
    with serving(gpus, "--pod-resources-socket", str(socket)) as exporter:
        assert holders(exporter) == NOBODY
        assert exporter.value(UP) == 0
        with FakeKubelet([holding("GPU-0", pod="burn")]).serving(socket):
            exporter.until(lambda: exporter.value(UP) == 1)
            exporter.until(lambda: ("0", "", "burn") in holders(exporter))
        exporter.until(lambda: exporter.value(UP) == 0)
        assert ("0", "", "burn") in holders(exporter)
        assert exporter.value("gpuworkshop_pod_mapping_age_seconds") is not None
        assert exporter.value("gpuworkshop_pod_mapping_errors_total", cause="socket_missing")
        assert exporter.get("/health")[0] == 200


def test_a_kubelet_that_hangs_holds_up_nothing(gpus: Path, tmp_path: Path) -> None:
    kubelet = FakeKubelet()
    kubelet.hung = True
    option = ("--pod-resources-socket", str(tmp_path / "k.sock"))
    with kubelet.serving(tmp_path / "k.sock"), serving(gpus, *option) as exporter:
        first = exporter.value("gpuworkshop_sample_timestamp_seconds")
        exporter.until(lambda: exporter.value("gpuworkshop_sample_timestamp_seconds") != first)
        assert holders(exporter) == NOBODY
        cause = {"cause": "deadline_exceeded"}
        exporter.until(lambda: bool(exporter.value("gpuworkshop_pod_mapping_errors_total", **cause)))


def test_without_the_option_nothing_is_said_of_a_kubelet_and_no_protobuf_is_loaded(gpus: Path) -> None:
    with serving(gpus) as exporter:
        assert not [each for each in exporter.samples() if "pod_mapping" in each.name]
        maps = Path(f"/proc/{exporter.process.pid}/maps")
        if maps.exists():
            assert "google/_upb" not in maps.read_text(encoding="utf-8")


def test_history_has_no_kubelet(gpus: Path) -> None:
    span = ("--backfill", "1720000000", "1720000001")
    ended = run("--gpus", str(gpus), "--pod-resources-socket", "/nowhere", *span)
    assert ended.returncode == 2
    assert "it has no --backfill" in ended.stderr


def test_missing_package_is_told_with_what_to_do(gpus: Path) -> None:
    arguments = ["gpuworkshop", *COMMAND[3:], "--gpus", str(gpus), "--pod-resources-socket", "/nowhere"]
    script = (
        "import sys\nsys.modules['h2'] = None\nfrom gpuworkshop.cli import main\n"
        f"sys.argv = {arguments!r}\nmain()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert "without the package h2" in ended.stderr
    assert "pip install h2 protobuf" in ended.stderr
