"""Scrapes of an exporter with much to say: `python benchmarks/exporter_scrape.py`.

8 simulated GPUs, 26 fields, 7 pods on each GPU by a made-up kubelet, 20 scrapes a second over kept
connections, gzipped as Prometheus has it, and plain, by turns. Beside it the same series through
prometheus_client. On a machine with a GPU of its own: this exporter and nvitop-exporter on that GPU.
Aims: p50 under 1 ms, p99 under 5 ms, rendering 10 times as fast as prometheus_client, under 60 MiB and flat.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
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

OURS = ["gpuworkshop", "exporter", "--listen", "127.0.0.1:PORT"]
NVITOP = ["nvitop_exporter", "--bind-address", "127.0.0.1", "--port", "PORT", "--interval", "1"]
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


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(command: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The address of an exporter of any kind, once it answers, and its process id."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [word.replace("PORT", str(port)) for word in command]
    with subprocess.Popen([sys.executable, "-m", *words], stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 20
            while socket.socket().connect_ex(("127.0.0.1", port)):
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{command[0]} did not start")
                time.sleep(0.1)
            time.sleep(2)  # its first readings
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()


class Client:
    """A kept connection; its own part of a scrape's time is as small as can be."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._socket = socket.create_connection((address.hostname, address.port), timeout=10)

    def scrape(self, encoding: str) -> int:
        """The body's length."""
        request = f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: {encoding}\r\n\r\n"
        self._socket.sendall(request.encode())
        got = b""
        while b"\r\n\r\n" not in got:
            got += self._socket.recv(2**20)
        head, _, body = got.partition(b"\r\n\r\n")
        found = re.search(rb"(?i)content-length: (\d+)", head)
        if not found:
            sys.exit("an answer without a length")
        length, have = int(found[1]), len(body)
        while have < length:
            have += len(self._socket.recv(2**20))
        return length


def scrapes(url: str, seconds: float, pid: int) -> None:
    cpu = cpu_s(pid)
    clients = [Client(url) for _ in range(4)]
    took: dict[str, list[float]] = {"gzip": [], "identity": []}
    sizes: dict[str, int] = {}
    memory = []
    begun = time.monotonic()
    for number in range(int(seconds * PER_SECOND)):
        time.sleep(max(0.0, begun + number / PER_SECOND - time.monotonic()))
        client = clients[number % len(clients)]
        encoding = "identity" if number % 4 > 1 else "gzip"
        start = time.perf_counter()
        sizes[encoding] = client.scrape(encoding)
        took[encoding].append(1000 * (time.perf_counter() - start))
        if number % PER_SECOND == 0:
            memory.append(resident_mib(pid))
    for encoding, each in took.items():
        ordered = sorted(each)
        middle, kilobytes = ordered[len(each) // 2], sizes[encoding] / 1000
        print(f"| {encoding}, {kilobytes:.0f} kB: p50, ms | {middle:.2f} | aim 1 |")
        print(f"| p99, ms | {ordered[int(len(each) * 0.99)]:.2f} | aim 5 |")
        print(f"| longest of {len(each)}, ms | {ordered[-1]:.2f} | |")
    share = 100 * (cpu_s(pid) - cpu) / (time.monotonic() - begun)
    print(f"| processor, scrapes too | {share:.1f} % of a core | |")
    tenth = memory[len(memory) // 10]
    print(f"| resident, MiB | {tenth:.1f} after a tenth, {memory[-1]:.1f} at last | aim 60 |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    seconds = parser.parse_args().seconds
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
        options = ["--gpus", str(folder / "gpus.yaml"), "--hostname", "node-1"]
        options += ["--pod-resources-socket", str(folder / "kubelet.sock")]
        with running([*OURS, *options]) as (url, pid):
            scrapes(url, seconds, pid)
        server.stop(None)
    if not find_spec("nvitop_exporter") or not shutil.which("nvidia-smi"):
        print("nvitop-exporter is not compared: it is not installed, or this machine has no GPU")
        return
    for name, command in (("this exporter", [*OURS, "--extended"]), ("nvitop-exporter", NVITOP)):
        print(f"\n{name}, on the machine's own GPU")
        with running(command) as (url, pid):
            scrapes(url, seconds, pid)


if __name__ == "__main__":
    main()
