"""The processes of the lab: one exporter a simulated node, and Prometheus.

`build` runs in the supervisor's own process, which thereby holds the claim on the lab's /16.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from gpuworkshop.errors import DiskFull
from gpuworkshop.lab.prometheus import PrometheusFiles, ScrapeTarget
from gpuworkshop.lab.simulation import SimulatedNode
from gpuworkshop.processes.ports import claim_subnet, steady_port
from gpuworkshop.processes.supervisor import Service
from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

NODE = "gpu-node-1"
MODEL = "H200"
GPUS = 4
EXPORTER_PORT = 9400
EXPORTER_INTERVAL_MS = 250  # the trace's own rate
LEAST_FREE_BYTES = 2**30  # Prometheus and promtool take room in large pieces, before they need it


def node(settings: Settings) -> SimulatedNode:
    """The lab's node, with its GPUs."""
    simulated = SimulatedNode(settings.state / "lab" / "nodes" / f"{NODE}.yaml")
    simulated.create(MODEL, GPUS)
    return simulated


def files(settings: Settings) -> PrometheusFiles:
    """The folder of the lab's Prometheus."""
    return PrometheusFiles(settings.state / "lab" / "prometheus")


def build(settings: Settings) -> list[Service]:
    """Prepare the lab's files and list its services, in the order in which they start."""
    check_disk(settings)
    prometheus = find_or_fetch("prometheus", settings)
    subnet = claim_subnet()
    simulated = node(settings)
    address = f"{subnet.address(1, 1)}:{EXPORTER_PORT}"
    files(settings).write([ScrapeTarget(address, NODE)])
    return [_exporter(simulated, address), _prometheus(settings, prometheus)]


def _exporter(simulated: SimulatedNode, address: str) -> Service:
    command = [sys.executable, "-m", "gpuworkshop", "exporter", "--gpus", str(simulated.path)]
    command += ["--hostname", simulated.name, "--listen", address, "--interval", str(EXPORTER_INTERVAL_MS)]
    url = f"http://{address}"
    return Service(f"exporter-{simulated.name}", command, url=f"{url}/metrics", health_url=f"{url}/health")


def _prometheus(settings: Settings, binary: Path) -> Service:
    address = f"127.0.0.1:{steady_port(files(settings).folder / 'port')}"
    command = files(settings).command(binary, address)
    return Service("prometheus", command, url=f"http://{address}", health_url=f"http://{address}/-/ready")


def check_disk(settings: Settings) -> None:
    """Raise DiskFull unless there is room for the lab's Prometheus to work."""
    settings.state.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(settings.state).free
    if free < LEAST_FREE_BYTES:
        raise DiskFull(
            f"only {free / 2**20:.0f} MiB are free at {settings.state}; Prometheus wants "
            f"{LEAST_FREE_BYTES / 2**20:.0f} MiB",
            step="starting the lab",
            todo="make room, or set GPUWORKSHOP_STATE in .env to a folder on a larger disk",
        )
