"""A real Prometheus over a written history: a wave, a gap, odd values, two releases."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuworkshop.metrics import PrometheusReader
from gpuworkshop.processes.ports import free_port

SECONDS = 12_000
GPU_A = 'gpu="0",UUID="GPU-a",hostname="node-1"'
GPU_B = 'gpu="0",UUID="GPU-b",hostname="node-2",job="dcgm"'
WAVE_POD = 'namespace="default",pod="wave",container="main"'
TRAIN_POD = 'exported_namespace="ml",exported_pod="train",exported_container="main"'
EXPORTER_POD = 'namespace="gpu-operator",pod="dcgm-exporter-x",container="exporter"'


@dataclass(frozen=True)
class History:
    """A Prometheus at `url` that stores SECONDS of history from `start` (epoch seconds) on."""

    url: str
    start: int


def openmetrics(start: int) -> Iterator[str]:
    def series(metric: str, labels: str, values: Iterator[tuple[int, object]]) -> Iterator[str]:
        yield from (f"{metric}{{{labels}}} {value} {start + second}\n" for second, value in values)

    recent = range(SECONDS - 600, SECONDS)
    wave = {second: 100 if (start + second) % 40 < 20 else 0 for second in recent}
    yield from series("DCGM_FI_DEV_GPU_UTIL", f"{GPU_A},{WAVE_POD}", iter(wave.items()))
    ratio = ((second, 0.36) for second in recent)
    yield from series("DCGM_FI_DEV_GPU_UTIL_RATIO", f"{GPU_B},{TRAIN_POD},{EXPORTER_POD}", ratio)
    idle = ((second, 0) for second in recent)
    yield from series("DCGM_FI_DEV_GPU_UTIL_RATIO", f"{GPU_B.replace('0', '1')},{EXPORTER_POD}", idle)
    holes = ((second, 690.5) for second in recent if not 300 < second - recent.start <= 360)
    yield from series("DCGM_FI_DEV_POWER_USAGE", f"{GPU_A},{WAVE_POD}", holes)
    for instance in (3, 4):
        mig = ((second, instance / 10) for second in recent)
        yield from series("DCGM_FI_PROF_SM_ACTIVE", f'{GPU_A},GPU_I_ID="{instance}"', mig)
    odd = zip(recent, ["NaN", "+Inf", "-Inf", "1.5"] * 150, strict=True)
    yield from series("odd_values", 'pod="x"', odd)
    yield from series("counting", 'pod="all"', ((second, second) for second in range(SECONDS)))
    yield from series("counting", 'pod="late"', ((second, 1) for second in range(11_500, SECONDS)))
    info = ((second, 1) for second in recent)
    yield from series("gpuworkshop_simulated_info", f'{GPU_A},note="H200 trace"', info)
    yield "# EOF\n"


def await_ready(url: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "Prometheus did not become ready"
            time.sleep(0.05)
        else:
            return


@pytest.fixture(scope="session")
def history(prometheus: Path, promtool: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    folder = tmp_path_factory.mktemp("a history")
    start = int(time.time()) - SECONDS - 60
    (folder / "history.om").write_text("".join(openmetrics(start)))
    backfill = [str(promtool), "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run([*backfill, str(folder / "history.om"), str(folder / "data")], check=True, timeout=60)
    (folder / "prometheus.yml").write_text("scrape_configs: []\n")
    address = f"127.0.0.1:{free_port()}"
    command = [
        str(prometheus),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--query.lookback-delta=1s",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            await_ready(f"http://{address}/-/ready")
            yield History(f"http://{address}", start)
        finally:
            server.terminate()


@pytest.fixture
def reader(history: History) -> Iterator[PrometheusReader]:
    with PrometheusReader(history.url) as reader:
        yield reader
