"""Scrapes of an exporter with much to say: `python benchmarks/exporter_scrape.py`.

8 simulated GPUs, 26 fields, 7 pods on each GPU by a made-up kubelet, 20 scrapes a second over kept
connections, gzipped by turns, as several Prometheus servers would. Beside it the same series through
prometheus_client, and nvitop-exporter if it is installed and finds a GPU.
Aims: p50 under 1 ms, p99 under 5 ms, rendering 10 times as fast as prometheus_client, under 60 MiB and flat.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from gpuworkshop.exporter.backends.replay import ReplayBackend
from gpuworkshop.exporter.devices import Device, Pod
from gpuworkshop.exporter.rendering import Renderer, labels
from gpuworkshop.exporter.sampler import Snapshot, sample
from gpuworkshop.exporter.schema import SCHEMAS
from gpuworkshop.podresources import messages
from gpuworkshop.podresources.server import handler

GPUS, PODS, PER_SECOND = 8, 7, 20
ROUNDS = 50
SCHEMA = SCHEMAS["4.8.4"]


def write_gpus(path: Path) -> ReplayBackend:
    path.write_text(yaml.safe_dump([{"index": n, "model": "H200", "load": "training"} for n in range(GPUS)]))
    return ReplayBackend(path, "node-1")


def pods_of(index: int) -> list[Pod]:
    return [Pod("team", f"trainer-{index}-{n}", "main") for n in range(PODS)]


class Kubelet:
    """The pod-resources API of a node whose GPUs have seven pods each."""

    def __init__(self, uuids: list[str]) -> None:
        self.pods = [self._pod(pod, f"{uuid}::{n}") for index, uuid in enumerate(uuids)
                     for n, pod in enumerate(pods_of(index))]  # fmt: skip

    @staticmethod
    def _pod(pod: Pod, device: str) -> Any:
        devices = messages.ContainerDevices(resource_name="nvidia.com/gpu", device_ids=[device])
        container = messages.ContainerResources(name=pod.container, devices=[devices])
        return messages.PodResources(name=pod.pod, namespace=pod.namespace, containers=[container])

    def list(self, _: Any, __: Any) -> Any:
        return messages.ListPodResourcesResponse(pod_resources=self.pods)

    allocatable = get = list


class Mapping:
    """The same, without a kubelet."""

    def pods(self, device: Device) -> list[Pod]:
        return pods_of(device.index)


class Collector:
    """A snapshot for prometheus_client, as an exporter built on it would hand it over."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def collect(self) -> list[Metric]:
        found: list[Metric] = []
        for metric in SCHEMA.metrics:
            names = [
                name
                for name, _ in labels(self.snapshot.devices[0].reading.device, pods_of(0)[0], SCHEMA, "n")
            ]
            family = GaugeMetricFamily(metric.name, metric.help, labels=names)
            for held in self.snapshot.devices:
                value = held.reading.values.get(metric.field)
                for pod in held.pods if value is not None else ():
                    pairs = labels(held.reading.device, pod, SCHEMA, "node-1")
                    family.add_metric([text for _, text in pairs], float(metric.text(value or 0.0)))
            found.append(family)
        return found


def milliseconds(work: Any) -> float:
    took = []
    gc.disable()
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        took.append(1000 * (time.perf_counter() - begun))
    gc.enable()
    return statistics.median(took)


def rendering(backend: ReplayBackend) -> None:
    snapshot = sample(backend, Mapping(), time.time())
    renderer = Renderer(SCHEMA, "node-1")
    series = sum(line.startswith("DCGM") for line in renderer.render(snapshot).decode().splitlines())
    ours = milliseconds(lambda: renderer.render(snapshot))
    registry = CollectorRegistry()
    registry.register(Collector(snapshot))
    theirs = milliseconds(lambda: generate_latest(registry))
    print(f"| rendering {series} series, ms | {ours:.2f} | |")
    print(f"| prometheus_client, the same | {theirs:.1f} | {theirs / ours:.0f} times |")


def resident_mib(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text("ascii"))
    return int(found[1]) / 1024 if found else float("nan")


def scrapes(url: str, seconds: float, pid: int) -> None:
    address = urlsplit(url)
    clients = [http.client.HTTPConnection(address.hostname or "", address.port, timeout=10) for _ in range(4)]
    took, sizes, memory = [], set(), []
    begun = time.monotonic()
    for number in range(int(seconds * PER_SECOND)):
        time.sleep(max(0.0, begun + number / PER_SECOND - time.monotonic()))
        client = clients[number % len(clients)]
        encoding = "gzip" if number % 2 else "identity"
        start = time.perf_counter()
        client.request("GET", "/metrics", headers={"Accept-Encoding": encoding})
        sizes.add(len(client.getresponse().read()) // 1000)
        took.append(1000 * (time.perf_counter() - start))
        if number % PER_SECOND == 0:
            memory.append(resident_mib(pid))
    ordered = sorted(took)
    print(f"| scrapes | {len(took)} in {seconds:g} s | {min(sizes)} to {max(sizes)} kB |")
    print(f"| p50, ms | {ordered[len(ordered) // 2]:.2f} | aim 1 |")
    print(f"| p99, ms | {ordered[int(len(ordered) * 0.99)]:.2f} | aim 5 |")
    print(f"| longest, ms | {ordered[-1]:.2f} | |")
    tenth = memory[len(memory) // 10]
    print(f"| resident, MiB | {tenth:.1f} after a tenth, {memory[-1]:.1f} at last | aim 60 |")


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--seconds", type=float, default=60.0)
    seconds = options.parse_args().seconds
    print(f"Python {platform.python_version()}, {GPUS} GPUs x {len(SCHEMA.metrics)} fields x {PODS} pods")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        backend = write_gpus(folder / "gpus.yaml")
        rendering(backend)
        server = grpc.server(ThreadPoolExecutor(2))
        lister: Any = Kubelet([reading.device.uuid for reading in backend.read(time.time())])
        server.add_generic_rpc_handlers((handler(lister),))
        server.add_insecure_port(f"unix:{folder / 'kubelet.sock'}")
        server.start()
        command = [sys.executable, "-m", "gpuworkshop", "exporter", "--gpus", str(folder / "gpus.yaml")]
        command += ["--hostname", "node-1", "--listen", "127.0.0.1:0"]
        command += ["--pod-resources-socket", str(folder / "kubelet.sock")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout
                found = re.search(r"http://[^/]+", process.stdout.readline())
                if not found:
                    sys.exit("the exporter did not start")
                scrapes(found[0], seconds, process.pid)
            finally:
                process.terminate()
        server.stop(None)
    if not shutil.which("nvitop-exporter") or not shutil.which("nvidia-smi"):
        print("nvitop-exporter is not compared: it is not installed, or this machine has no GPU")


if __name__ == "__main__":
    main()
