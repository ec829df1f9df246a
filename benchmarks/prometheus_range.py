"""A range query of 200 series x 3,600 points, from a real Prometheus to a DataFrame: ours and two peers'.

    pip install -e '.[benchmark]' && python benchmarks/prometheus_range.py [--runs 7]

Starts a Prometheus of its own on back-filled series. Each reader runs in a process of its own, in turn, and
says its time a query, the processor time of its own in that (without Prometheus's), and by how much the
query raised its peak memory. `http_alone` only reads the answer: no reader that asks once can be faster.
No other load should run.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from gpuworkshop import settings
from gpuworkshop.processes.ports import free_port
from gpuworkshop.processes.tools import find_or_fetch

SERIES, POINTS = 200, 3600
METRIC = "DCGM_FI_DEV_POWER_USAGE"
Query = Callable[[datetime, datetime], object]


def ours(url: str) -> Query:
    from gpuworkshop.metrics import PrometheusReader

    reader = PrometheusReader(url)
    return lambda start, end: reader.range(METRIC, start, end, "1s")


def prometheus_api_client(url: str) -> Query:
    from prometheus_api_client import MetricRangeDataFrame, PrometheusConnect

    server = PrometheusConnect(url)
    return lambda start, end: MetricRangeDataFrame(server.custom_query_range(METRIC, start, end, "1s"))


def promql_http_api(url: str) -> Query:
    from promql_http_api import PromqlHttpApi

    server = PromqlHttpApi(url)
    return lambda start, end: server.query_range(METRIC, start, end, "1s").to_dataframe()


def http_alone(url: str) -> Query:
    import httpx

    client = httpx.Client(headers={"Accept-Encoding": "identity"})

    def query(start: datetime, end: datetime) -> object:
        form = {"query": METRIC, "start": start.timestamp(), "end": end.timestamp(), "step": "1s"}
        return client.post(f"{url}/api/v1/query_range", data=form).content

    return query


READERS = {each.__name__: each for each in (ours, prometheus_api_client, promql_http_api, http_alone)}
FIGURES = ("ms", "cpu_ms", "mb")


def history(start: int) -> Iterator[str]:
    """OpenMetrics of 200 GPUs' power, a wave with noise, that three in a hundred scrapes have missed."""
    dice = random.Random(1)  # noqa: S311 - numbers to draw, not to guard
    yield f"# TYPE {METRIC} gauge\n"
    for number in range(SERIES):
        labels = (
            f'gpu="{number % 8}",UUID="GPU-{number:032x}",device="nvidia{number % 8}",'
            f'modelName="NVIDIA H200",hostname="node-{number // 8}",namespace="default",'
            f'pod="gpu-burn-{number:03}",container="main",job="dcgm",instance="127.0.0.1:9400"'
        )
        for second in range(POINTS):
            if dice.random() < 0.97:
                watts = 400 + 290 * math.copysign(1, math.sin(second / 40 * 2 * math.pi)) + dice.random()
                yield f"{METRIC}{{{labels}}} {watts:.3f} {start + second}\n"
    yield "# EOF\n"


@contextmanager
def prometheus(folder: Path, start: int) -> Iterator[str]:
    """The address of a Prometheus over that history."""
    chosen = settings.load()
    text = folder / "history.om"
    with text.open("w") as file:
        file.writelines(history(start))
    backfill = [str(find_or_fetch("promtool", chosen)), "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run([*backfill, str(text), str(folder / "data")], check=True, stdout=subprocess.DEVNULL)
    (folder / "prometheus.yml").write_text("scrape_configs: []\n")
    address = f"127.0.0.1:{free_port('127.0.0.1')}"
    server = subprocess.Popen(
        [
            find_or_fetch("prometheus", chosen),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=10y",
            "--query.lookback-delta=1s",
            f"--web.listen-address={address}",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        await_ready(f"http://{address}/-/ready")
        yield f"http://{address}"
    finally:
        server.terminate()
        server.wait()


def await_ready(url: str) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(reader: str, url: str, start: int) -> dict[str, float]:
    """Medians of three queries, after a tiny one to warm up: milliseconds, and those of this process's
    processor time; and the MiB that the first one put on top of the peak."""
    query = READERS[reader](url)
    first, last = (datetime.fromtimestamp(start + offset, UTC) for offset in (0, POINTS - 1))
    query(first, first)
    gc.collect()
    before = peak_mb()
    runs = []
    for _ in range(3):
        began, worked = time.perf_counter(), time.process_time()
        found = query(first, last)
        ms, cpu_ms = (time.perf_counter() - began) * 1000, (time.process_time() - worked) * 1000
        runs.append({"ms": ms, "cpu_ms": cpu_ms, "mb": peak_mb() - before})
        assert getattr(found, "size", 0) >= SERIES * POINTS * 0.9 or isinstance(found, bytes)
        del found
    times = {key: statistics.median(run[key] for run in runs) for key in ("ms", "cpu_ms")}
    return {**times, "mb": runs[0]["mb"]}


def in_process(reader: str, url: str, start: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", reader, url, str(start)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.measure:
        reader, url, start = chosen.measure
        print(json.dumps(measure(reader, url, int(start))))
        return
    start = int(time.time()) // 7200 * 7200 - 7200
    with tempfile.TemporaryDirectory() as folder, prometheus(Path(folder), start) as url:
        rounds = [{reader: in_process(reader, url, start) for reader in READERS} for _ in range(chosen.runs)]
    report(
        {
            reader: {key: statistics.median(each[reader][key] for each in rounds) for key in FIGURES}
            for reader in READERS
        }
    )


def report(medians: dict[str, dict[str, float]]) -> None:
    base = medians["ours"]
    print(f"{'reader':24}" + "".join(f"{key:>10}{'ratio':>8}" for key in FIGURES))
    for reader, row in medians.items():
        print(f"{reader:24}" + "".join(f"{row[key]:10.0f}{row[key] / base[key]:8.1f}" for key in FIGURES))


if __name__ == "__main__":
    main()
