"""The cluster's process: killed at any time, it loses nothing and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from own_cluster import CONFIG, ClusterProcess, client_of, create_nodes, new_cluster

from gpuworkshop.settings import Settings

pytestmark = pytest.mark.real
SLEEPER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: sleeper}
spec:
  replicas: 2
  selector: {matchLabels: {app: sleeper}}
  template:
    metadata: {labels: {app: sleeper}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: python:3.12-slim
          command: [python, -c, "import signal; signal.sigwait([signal.SIGTERM])", "MARK"]
"""


@pytest.fixture
def own(settings: Settings, tmp_path: Path) -> Iterator[ClusterProcess]:
    process = new_cluster(settings, tmp_path / "own cluster")
    process.start()
    yield process
    process.stop()


def processes(mark: str) -> list[str]:
    """The command lines of this machine's processes with `mark` in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        if mark in line:
            found.append(line)
    return found


def test_killed_and_started_again(own: ClusterProcess, tmp_path: Path) -> None:
    client, mark = client_of(own), f"mark-of-{tmp_path.name}"
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    create_nodes(own, config)
    client.apply(SLEEPER.replace("MARK", mark))
    client.kubectl("rollout", "status", "deployment/sleeper", "--timeout=30s")
    before = {pod["metadata"]["uid"] for pod in client.json("get", "pods")["items"]}
    newest = max(int(item["metadata"]["resourceVersion"]) for item in client.json("get", "pods")["items"])
    assert len(processes(mark)) == 2

    own.stop(kill=True)
    own.start()
    client.kubectl("rollout", "status", "deployment/sleeper", "--timeout=30s")
    pods = client.json("get", "pods")["items"]
    assert {pod["metadata"]["uid"] for pod in pods} == before
    running = "jsonpath={.items[*].status.containerStatuses[0].restartCount}"
    assert set(client.kubectl("get", "pods", "-o", running).split()) == {"1"}
    client.kubectl("annotate", "deployment", "sleeper", "seen=again")
    changed = client.json("get", "deployment", "sleeper")["metadata"]["resourceVersion"]
    assert int(changed) > newest
    assert len(processes(mark)) == 2, "those of before the kill are gone"

    assert own.stop() == 0
    assert processes(mark) == []
    own.start()
