"""The processes of the lab: the cluster, and the Prometheus that discovers its targets there.

`build` runs in the supervisor's own process, which thereby holds the claim on the lab's /16.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from gpuworkshop.errors import DiskFull
from gpuworkshop.lab import cluster_access
from gpuworkshop.lab.prometheus import PrometheusFiles
from gpuworkshop.processes.ports import claim_subnet, steady_port
from gpuworkshop.processes.supervisor import Service
from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

LEAST_FREE_BYTES = 2**30  # Prometheus and promtool take room in large pieces, before they need it


def files(settings: Settings) -> PrometheusFiles:
    """The folder of the lab's Prometheus."""
    return PrometheusFiles(settings.state / "lab" / "prometheus")


def build(settings: Settings) -> list[Service]:
    """Prepare the lab's files and list its services, in the order in which they start."""
    check_disk(settings)
    prometheus = find_or_fetch("prometheus", settings)
    folder = cluster_access.folder(settings)
    access = cluster_access.prepare(folder)
    files(settings).write(folder.kubeconfig)
    return [_cluster(access, str(claim_subnet().network)), _prometheus(settings, prometheus)]


def _cluster(access: cluster_access.Access, network: str) -> Service:
    command = [sys.executable, "-m", "gpuworkshop", "lab", "serve", "--network", network]
    command += ["--api-port", str(access.api_port), "--charts-port", str(access.charts_port)]
    return Service("cluster", command, url=access.server, health_url=f"{access.charts_url}/healthz")


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
