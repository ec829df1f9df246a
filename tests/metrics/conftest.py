"""A real Prometheus over a written history."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stored_history import SECONDS, History, await_ready, openmetrics

from gpuworkshop.metrics import PrometheusReader
from gpuworkshop.processes.ports import free_port


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
