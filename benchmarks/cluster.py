"""The rehearsal cluster: how soon it is ready, how soon kubectl answers, and whether watches keep up.

Run by hand: `python benchmarks/cluster.py`. Aims: the API ready within 1 s, three nodes ready within 3 s of
`create`, `kubectl get pods` in 0.3 s at 100 pods and 1 s at 1,000, 50 watches with 100 changes a second.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import msgspec
import yaml

from gpuworkshop import settings as settings_module
from gpuworkshop.lab import cluster_access
from gpuworkshop.processes.ports import claim_subnet
from gpuworkshop.processes.tools import find_or_fetch

WATCHES, CHANGES_A_SECOND, SECONDS = 50, 100, 10
IN_FLIGHT = 4  # connections that change things; each new one costs a TLS handshake
CONFIG = """\
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata: {name: benchmark, region: us-west-2}
managedNodeGroups:
  - {name: sys, instanceType: m5.24xlarge, desiredCapacity: 2}
  - {name: gpu, instanceType: p5en.48xlarge, desiredCapacity: 1}
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 100
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: nginx}]
"""


def main() -> None:
    """Measure, and print a line for each figure."""
    settings = settings_module.load()
    kubectl = find_or_fetch("kubectl", settings)
    with tempfile.TemporaryDirectory() as state:
        Path(state, "tools").symlink_to(settings.tools)
        folder = cluster_access.Folder(Path(state, "lab"))
        access = cluster_access.prepare(folder)
        environment = {**os.environ, "GPUWORKSHOP_STATE": state, "KUBECONFIG": str(folder.kubeconfig)}
        command = [
            sys.executable,
            "-m",
            "gpuworkshop",
            "lab",
            "serve",
            "--network",
            str(claim_subnet().network),
        ]
        command += ["--api-port", str(access.api_port), "--charts-port", str(access.charts_port)]
        begun = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as server:
            try:
                assert server.stdout is not None
                server.stdout.readline()
                print(f"API ready: {time.monotonic() - begun:.2f} s after the process was started")
                _measure(str(kubectl), folder, access.server, environment, Path(state))
                status = Path(f"/proc/{server.pid}/status").read_text()
                (resident,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))
                print(f"resident memory with 1,000 pods: {int(resident) / 1024:.0f} MiB")
            finally:
                server.terminate()


def _measure(
    kubectl: str, folder: cluster_access.Folder, server: str, env: dict[str, str], state: Path
) -> None:
    config = state / "config.yaml"
    config.write_text(CONFIG)
    create = [sys.executable, "-m", "gpuworkshop", "lab", "create", "-f", str(config)]
    print(f"three nodes ready, with what runs on them: {_seconds(create, env):.2f} s")
    asyncio.run(_watch(folder, server, "no pods of its own"))
    _run([kubectl, "apply", "-f", "-"], env, DEPLOYMENT)
    for count in (100, 1000):
        _run([kubectl, "scale", "deployment/web", f"--replicas={count}"], env)
        waited = _seconds([kubectl, "rollout", "status", "deployment/web", "--timeout=120s"], env)
        times = sorted(_seconds([kubectl, "get", "pods"], env) for _ in range(7))
        print(f"{count} pods: ready in {waited:.1f} s; kubectl get pods {statistics.median(times):.2f} s")
    asyncio.run(_watch(folder, server, "1,000 pods"))


async def _watch(folder: cluster_access.Folder, server: str, beside: str) -> None:
    token = yaml.safe_load(folder.kubeconfig.read_text())["users"][0]["user"]["token"]
    trust = ssl.create_default_context(cafile=str(folder.secrets / "ca.crt"))
    maps = f"{server}/api/v1/namespaces/default/configmaps"
    total = CHANGES_A_SECOND * SECONDS
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {token}"}, connector=aiohttp.TCPConnector(ssl=trust, limit=0)
    ) as session:
        async with session.post(maps, json={"metadata": {"generateName": "clock-"}}) as made:
            metadata = (await made.json())["metadata"]
        clock, version = metadata["name"], metadata["resourceVersion"]
        query = {"watch": "true", "resourceVersion": version, "fieldSelector": f"metadata.name={clock}"}
        watching = [asyncio.create_task(_follow(session, maps, query, total)) for _ in range(WATCHES)]
        begun = time.monotonic()
        changing, few = [], asyncio.Semaphore(IN_FLIGHT)
        for number in range(total):
            await asyncio.sleep(max(0.0, begun + number / CHANGES_A_SECOND - time.monotonic()))
            changing.append(asyncio.create_task(_change(session, few, f"{maps}/{clock}", number)))
        await asyncio.gather(*changing)
        took = time.monotonic() - begun
        seen = await asyncio.gather(*watching)
    versions = [[version for version, _, _ in each] for each in seen]
    right = sum(
        each == sorted(set(each)) and {number for _, number, _ in changes} == set(range(total))
        for each, changes in zip(versions, seen, strict=True)
    )
    lags = sorted(1000 * lag for each in seen for _, _, lag in each)
    middle, late = lags[len(lags) // 2], lags[len(lags) * 99 // 100]
    print(
        f"{WATCHES} watches beside {beside}: {total / took:.0f} changes a second, {right} saw each once and"
    )
    print(f"  in order; lag of the middle one {middle:.0f} ms, of the 99th percentile {late:.0f} ms")


async def _change(session: aiohttp.ClientSession, few: asyncio.Semaphore, url: str, number: int) -> None:
    headers = {"Content-Type": "application/merge-patch+json"}
    async with few:
        body = msgspec.json.encode({"data": {"number": str(number), "at": repr(time.time())}})
        async with session.patch(url, data=body, headers=headers) as patched:
            patched.raise_for_status()


async def _follow(
    session: aiohttp.ClientSession, url: str, query: dict[str, str], total: int
) -> list[tuple[int, int, float]]:
    """The version and number of each change, and seconds from its making until it was seen."""
    seen: list[tuple[int, int, float]] = []
    async with session.get(url, params=query) as answer:
        async for line in answer.content:
            found = msgspec.json.decode(line)["object"]
            version, data = int(found["metadata"]["resourceVersion"]), found["data"]
            seen.append((version, int(data["number"]), time.time() - float(data["at"])))
            if len(seen) == total:
                break
    return seen


def _seconds(command: Sequence[str], env: dict[str, str]) -> float:
    begun = time.monotonic()
    _run(command, env)
    return time.monotonic() - begun


def _run(command: Sequence[str], env: dict[str, str], stdin: str = "") -> None:
    subprocess.run(command, env=env, input=stdin, text=True, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
