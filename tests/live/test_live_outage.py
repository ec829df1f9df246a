"""A real Prometheus is killed under a live view, which says so, goes on, and loses nothing stored."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pandas as pd
import pytest

from gpuworkshop import live
from gpuworkshop.live.feed import SETTLING
from gpuworkshop.metrics import PrometheusReader
from gpuworkshop.processes.ports import free_port

pytestmark = pytest.mark.real

SERIES = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="n1",namespace="default",pod="a",container="main"}'
CONFIG = """
global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
- {job_name: gpus, honor_labels: true, static_configs: [{targets: ["%s"]}]}
"""


class Exporter(BaseHTTPRequestHandler):
    """One series whose value tells the second that it was scraped in."""

    def do_GET(self) -> None:
        body = f"{SERIES} {int(time.time()) % 100}\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def exporter() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


class Server:
    """A Prometheus that can be killed and started again on its address and data."""

    def __init__(self, binary: Path, folder: Path, exporter: str) -> None:
        self.address = f"127.0.0.1:{free_port('127.0.0.1')}"
        (folder / "prometheus.yml").write_text(CONFIG % exporter)
        self._command = [
            str(binary),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={self.address}",
            "--query.lookback-delta=3s",
        ]
        self._log = folder / "log"
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def server(prometheus: Path, exporter: str, tmp_path: Path) -> Iterator[Server]:
    server = Server(prometheus, tmp_path, exporter)
    yield server
    server.kill()


def eventually(true: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_killed_and_back(server: Server) -> None:
    with PrometheusReader(f"http://{server.address}") as reader:
        eventually(reader.healthy)
        view = live.view("outage", reader, "gpu utilisation", window_s=60, every_s=1.0)
        try:
            view.wait_for_data(20)
            eventually(lambda: len(view.frame) >= 4)
            server.kill()
            eventually(lambda: view.fault is not None)
            eventually(lambda: 'role="alert"' in view.controls.status.value)
            last = view.frame.index[-1]
            longer_than_the_look_back = last.timestamp() + 6
            eventually(lambda: time.time() > longer_than_the_look_back)
            server.start()
            eventually(lambda: view.fault is None)
            eventually(lambda: len(view.frame[last + pd.Timedelta(seconds=4) :]) >= 8)
            assert "back since" in view.controls.status.value
            stored = reader.range("DCGM_FI_DEV_GPU_UTIL", last.timestamp() - 60, time.time() // 1, 1.0)
        finally:
            live.stop_all()
    shown = view.frame.iloc[1 : -SETTLING - 1]
    pd.testing.assert_frame_equal(
        shown, stored.dropna().reindex(shown.index), check_freq=False, check_names=False
    )
    assert shown.index.to_series().diff().max() > pd.Timedelta(seconds=2)
