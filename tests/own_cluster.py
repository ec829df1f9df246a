"""A rehearsal cluster of the test run's own, and the real clients that drive it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuworkshop.lab import cluster_access
from gpuworkshop.lab.cluster_access import Access, Folder
from gpuworkshop.processes.ports import claim_subnet
from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

LIMIT_S = 60.0
# One node for the system, two with GPUs of different models.
CONFIG = """\
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata: {name: tests, region: us-west-2, version: "1.35"}
availabilityZones: [us-west-2a, us-west-2b]
managedNodeGroups:
  - {name: sys, instanceType: m5.xlarge, desiredCapacity: 1}
  - {name: g5, instanceType: g5.12xlarge, desiredCapacity: 2, labels: {team: vision}}
"""


@dataclass
class ClusterProcess:
    """One `gpuworkshop lab serve`, with its state in a folder."""

    settings: Settings
    folder: Folder
    access: Access
    network: str
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start it, and wait until it says that it serves."""
        command = [sys.executable, "-m", "gpuworkshop", "lab", "serve", "--network", self.network]
        command += ["--api-port", str(self.access.api_port), "--charts-port", str(self.access.charts_port)]
        environment = {**os.environ, "GPUWORKSHOP_STATE": str(self.settings.state)}
        log = (self.folder.path / "serve.log").open("a")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, env=environment, text=True
        )
        log.close()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "served at" in line, (line, self.log)

    def stop(self, kill: bool = False) -> int:
        """End it; the exit code."""
        assert self.process is not None
        self.process.kill() if kill else self.process.terminate()
        code = self.process.wait(timeout=LIMIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code

    @property
    def log(self) -> str:
        """What it wrote to stderr."""
        return (self.folder.path / "serve.log").read_text()


@dataclass(frozen=True)
class Client:
    """The real kubectl and helm, pointed at a cluster."""

    kubeconfig: Path
    kubectl_path: Path
    helm_path: Path
    home: Path

    def run(
        self, *command: str | Path, stdin: str = "", check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a client; its output."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
        }
        done = subprocess.run(
            [*map(str, command)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            env=environment,
            check=False,
        )
        if check:
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done

    def kubectl(self, *arguments: str | Path, stdin: str = "") -> str:
        """Run kubectl, which must succeed; what it prints."""
        return self.run(self.kubectl_path, *arguments, stdin=stdin).stdout

    def refused(self, *arguments: str | Path, stdin: str = "") -> str:
        """Run kubectl, which must fail; what it says to stderr."""
        done = self.run(self.kubectl_path, *arguments, stdin=stdin, check=False)
        assert done.returncode != 0, (arguments, done.stdout)
        return done.stderr

    def helm(self, *arguments: str | Path) -> str:
        """Run helm, which must succeed; what it prints."""
        return self.run(self.helm_path, *arguments).stdout

    def json(self, *arguments: str | Path) -> Any:
        """Run `kubectl ARGUMENTS -o json`."""
        return json.loads(self.kubectl(*arguments, "-o", "json"))

    def apply(self, manifest: str) -> str:
        """`kubectl apply -f -`."""
        return self.kubectl("apply", "-f", "-", stdin=manifest)


def new_cluster(settings: Settings, state: Path) -> ClusterProcess:
    """A cluster that has not started yet."""
    if not (state / "tools").exists():
        state.mkdir(parents=True, exist_ok=True)
        settings.tools.mkdir(parents=True, exist_ok=True)
        (state / "tools").symlink_to(settings.tools.resolve())
    own = Settings(root=settings.root, state=state)
    folder = cluster_access.folder(own)
    return ClusterProcess(own, folder, cluster_access.prepare(folder), str(claim_subnet().network))


def client_of(process: ClusterProcess) -> Client:
    """The clients of a cluster."""
    kubectl, helm = (find_or_fetch(name, process.settings) for name in ("kubectl", "helm"))
    return Client(process.folder.kubeconfig, kubectl, helm, process.folder.path)


@pytest.fixture(scope="session")
def cluster(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """A cluster with three nodes, for the whole test run; each test works in a namespace of its own."""
    process = new_cluster(settings, tmp_path_factory.mktemp("a cluster"))
    process.start()
    try:
        client = client_of(process)
        config = process.folder.path / "config.yaml"
        config.write_text(CONFIG)
        create_nodes(process, config)
        client.kubectl("wait", "node", "--all", "--for=condition=Ready", "--timeout=30s")
        yield process
    finally:
        process.stop()
    assert "Traceback" not in process.log, process.log


def create_nodes(process: ClusterProcess, config: Path) -> None:
    """`gpuworkshop lab create`."""
    subprocess.run(
        [sys.executable, "-m", "gpuworkshop", "lab", "create", "-f", str(config)],
        env={**os.environ, "GPUWORKSHOP_STATE": str(process.settings.state)},
        check=True,
        timeout=LIMIT_S,
        capture_output=True,
    )


@pytest.fixture
def client(cluster: ClusterProcess) -> Client:
    """kubectl and helm on the cluster."""
    return client_of(cluster)


@pytest.fixture
def namespace(client: Client, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own, gone after it."""
    name = "t-" + request.node.name.split("[")[0].removeprefix("test_").replace("_", "-")[:50].strip("-")
    client.kubectl("create", "namespace", name)
    yield name
    client.kubectl("delete", "namespace", name, "--wait=false")
