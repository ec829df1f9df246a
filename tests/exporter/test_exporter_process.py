"""The exporter as a process of its own, over HTTP: serving, changing loads, going wrong, ending."""

from __future__ import annotations

import gzip
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
from pathlib import Path

import pytest
from exporter_process import Exporter, run, serving, write_gpus

from gpuworkshop.exporter.schema import SCHEMAS

WAVE = {"kind": "wave", "on": 20, "off": 20}
GPUS = [
    {"index": 0, "pods": [{"namespace": "default", "pod": "burn", "container": "main", "load": WAVE}]},
    {"index": 1, "model": "A10G", "load": "memory-bound"},
]
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"


@pytest.fixture
def gpus(tmp_path: Path) -> Path:
    folder = tmp_path / "a folder"
    folder.mkdir()
    return write_gpus(folder / "gpus.yaml", GPUS)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_schema_is_served_and_parsed(gpus: Path, schema: str) -> None:
    with serving(gpus, "--schema", schema) as exporter:
        status, body, headers = exporter.get()
        samples = exporter.samples()
    assert status == 200
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert body.endswith(b"\n")
    names = {line.split("{")[0] for line in body.decode().splitlines() if line.startswith("DCGM")}
    absent = {m.name for m in SCHEMAS[schema].metrics} - names
    assert {name.removesuffix("_BYTES") for name in absent} == {"DCGM_FI_DEV_FB_RESERVED"}
    nodes = {
        sample.labels[SCHEMAS[schema].hostname_label] for sample in samples if "modelName" in sample.labels
    }
    assert nodes == {"node-1"}
    notes = {s.labels["gpu"]: s.labels["note"] for s in samples if s.name == "gpuworkshop_simulated_info"}
    assert notes == {"0": "H200 trace", "1": "H200 trace scaled to A10G"}


def test_a_scrape_may_be_gzipped(gpus: Path) -> None:
    with serving(gpus) as exporter:
        _, zipped, headers = exporter.get(**{"Accept-Encoding": "br, gzip;q=0.5"})
        assert headers["Content-Encoding"] == "gzip"
        assert b"DCGM_FI_DEV_GPU_UTIL" in gzip.decompress(zipped)
        _, plain, headers = exporter.get(**{"Accept-Encoding": "gzip;q=0"})
        assert headers["Content-Encoding"] is None
        assert b"DCGM_FI_DEV_GPU_UTIL" in plain


def test_the_page_for_people_and_the_health(gpus: Path) -> None:
    with serving(gpus) as exporter:
        assert exporter.get("/health")[:2] == (200, b"ok\n")
        page = exporter.get("/")[1].decode()
        assert "GPU 0: NVIDIA H200, default/burn" in page
        assert "GPU 1: NVIDIA A10G, no pod" in page
        with pytest.raises(urllib.error.HTTPError, match="404"):
            exporter.get("/api/v1/metrics/prometheus")


def test_new_samples_are_taken_at_the_cadence_not_by_scrapes(gpus: Path) -> None:
    with serving(gpus, "--interval", "60000") as exporter:
        bodies = {exporter.get()[1] for _ in range(5)}
        assert len(bodies) == 1
    with serving(gpus) as exporter:
        first = exporter.value("gpuworkshop_sample_timestamp_seconds")
        exporter.until(lambda: exporter.value("gpuworkshop_sample_timestamp_seconds") != first)


def test_a_load_can_be_set_while_it_serves_and_energy_only_grows(gpus: Path) -> None:
    with serving(gpus) as exporter:
        energies = [exporter.value(ENERGY + "_total", gpu="1")]
        assert exporter.value(TENSOR, gpu="1") == 0
        for load, shows in (("matmul", 0.8), ("pcie-bound", 0), ("matmul", 0.8), ("idle", 0)):
            write_gpus(gpus, [GPUS[0], {"index": 1, "model": "A10G", "load": load}])
            exporter.until(lambda shows=shows: _near(exporter.value(TENSOR, gpu="1"), shows))  # type: ignore[misc]
            energies.append(exporter.value(ENERGY + "_total", gpu="1"))
        seen = [energy for energy in energies if energy is not None]
    assert len(seen) == 5
    assert seen == sorted(seen)
    # No more than a GPU of 300 W can have used in the time; less than the jump that a restart would show.
    assert seen[-1] - seen[0] < 300_000 * 40


def _near(value: float | None, wanted: float) -> bool:
    return value is not None and abs(value - wanted) < 0.2


def test_pods_come_and_go_with_the_file(gpus: Path) -> None:
    with serving(gpus) as exporter:
        assert exporter.value(TENSOR, pod="burn") is not None
        write_gpus(gpus, [{"index": 0, "pods": [{"pod": "one"}, {"pod": "two"}]}])
        exporter.until(lambda: exporter.value(TENSOR, pod="two") is not None)
        assert exporter.value(TENSOR, pod="burn") is None
        assert exporter.value(TENSOR, gpu="1") is None


@pytest.mark.parametrize("broken", ["- {index: 0, load: trainin}", "- {index", "", None])
def test_a_file_broken_while_serving_keeps_the_last_good_state(gpus: Path, broken: str | None) -> None:
    with serving(gpus) as exporter:
        assert exporter.value("gpuworkshop_gpu_file_error") == 0
        if broken is None:
            gpus.unlink()
        else:
            write_gpus(gpus, broken)
        exporter.until(lambda: exporter.value("gpuworkshop_gpu_file_error") == 1)
        assert exporter.value(TENSOR, pod="burn") is not None
        assert exporter.get("/health")[0] == 200
        write_gpus(gpus, [{"index": 0, "pods": [{"pod": "mended"}]}])
        exporter.until(lambda: exporter.value(TENSOR, pod="mended") is not None)
        assert exporter.value("gpuworkshop_gpu_file_error") == 0
        log = _ended(exporter, signal.SIGTERM)
    assert log.count("the last good state of the GPUs stays in force") == 1
    assert log.count("What to do:") == 1
    assert "can be read again" in log
    assert "Traceback" not in log


def _ended(exporter: Exporter, number: signal.Signals) -> str:
    exporter.process.send_signal(number)
    assert exporter.process.stdout
    log = exporter.process.stdout.read()
    assert exporter.process.wait(10) == 0, log
    return log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_quietly_and_frees_the_port(gpus: Path, number: signal.Signals) -> None:
    with serving(gpus) as exporter:
        exporter.get()
        port = int(exporter.url.rsplit(":", 1)[1])
        assert _ended(exporter, number) == ""
        with pytest.raises(ProcessLookupError):
            os.kill(exporter.process.pid, 0)
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_a_connection_left_open_does_not_delay_the_end(gpus: Path) -> None:
    with serving(gpus) as exporter:
        host, port = exporter.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as open_connection:
            open_connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert open_connection.recv(12) == b"HTTP/1.1 200"
            assert _ended(exporter, signal.SIGTERM) == ""


def test_a_port_in_use_is_said(gpus: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = run("--gpus", str(gpus), "--listen", address)
    assert ended.returncode == 1
    assert f"PortInUse: starting the exporter: something else listens on {address}" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--gpus", "nowhere.yaml"), 1, "nowhere.yaml: No such file or directory"),
        (("--gpus", "{}", "--listen", "nonsense"), 2, "is not HOST:PORT"),
        (("--gpus", "{}", "--listen", "127.0.0.1:70000"), 2, "is not HOST:PORT"),
        (("--gpus", "{}", "--listen", "203.0.113.1:9400"), 1, "cannot listen on 203.0.113.1:9400"),
        (("--gpus", "{}", "--interval", "99"), 2, "not in the range 100<=x<=60000"),
        (("--gpus", "{}", "--schema", "4.7"), 2, "'4.8.2', '4.8.4', '4.9'"),
        (("--gpus", "{}", "--step", "1"), 2, "belong to --backfill"),
        (("--gpus", "{}", "--backfill", "200", "100"), 1, "there is no history from 200 to 100"),
        (("--gpus", "{}", "--backfill", "nan", "nan"), 1, "there is no history"),
        (("--gpus", "{}", "--backfill", "1600000000", "1700000000"), 1, "points a series are too many"),
        (("--gpus", "{}", "--backfill", "1", "2", "--label", "a-b=c"), 2, "is not NAME=VALUE"),
    ],
    ids=str,
)
def test_wrong_options_get_a_clear_answer(
    gpus: Path, arguments: tuple[str, ...], code: int, says: str
) -> None:
    ended = run(*(argument.format(gpus) for argument in arguments))
    assert ended.returncode == code
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_the_options_of_dcgm_exporter_are_understood(gpus: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving(gpus, "-a", f":{port}", "-c", "200") as exporter:
        assert exporter.url == f"http://127.0.0.1:{port}"
        assert exporter.get("/health")[0] == 200


def test_it_loads_no_heavy_library(gpus: Path) -> None:
    script = (
        "import sys, gpuworkshop.exporter.command\n"
        "print([m for m in ('numpy', 'pandas', 'matplotlib', 'kubernetes') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_a_wave_in_the_served_values_follows_the_clock(tmp_path: Path) -> None:
    # Short, so that several edges pass: on in the first second of every two.
    path = write_gpus(tmp_path / "gpus.yaml", [{"index": 0, "load": {"kind": "wave", "on": 1, "off": 1}}])
    settled: dict[float, float] = {}
    with serving(path) as exporter:
        deadline = time.monotonic() + 60
        while sum(value > 90 for value in settled.values()) < 6 or len(settled) < 12:
            assert time.monotonic() < deadline, settled
            at = exporter.value("gpuworkshop_sample_timestamp_seconds") or 0.0
            utilisation = exporter.value("DCGM_FI_DEV_GPU_UTIL") or 0.0
            # Kept if both scrapes were of one sample, and the recording had reached its new level by then.
            if exporter.value("gpuworkshop_sample_timestamp_seconds") == at and at % 1 > 0.3:
                settled[at] = utilisation
    assert all((value > 90) == (at % 2 < 1) for at, value in settled.items())
