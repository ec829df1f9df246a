"""The cluster's process: killed at any time, it loses nothing and leaves nothing behind."""

from __future__ import annotations

import json
import resource
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from own_cluster import CONFIG, LIMIT_S, ClusterProcess, client_of, create_nodes, new_cluster

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


MAPS = "/api/v1/namespaces/default/configmaps"


def api_of(process: ClusterProcess) -> httpx.Client:
    """The API server, by the admin's kubeconfig."""
    token = yaml.safe_load(process.folder.kubeconfig.read_text())["users"][0]["user"]["token"]
    trust = ssl.create_default_context(cafile=str(process.folder.secrets / "ca.crt"))
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=process.access.server, headers=headers, verify=trust, timeout=LIMIT_S)


def make(api: httpx.Client, name: str, size: int = 1) -> httpx.Response:
    return api.post(MAPS, json={"metadata": {"name": name}, "data": {"a": "x" * size}})


def event(lines: Iterator[str]) -> Any:
    return json.loads(next(lines))


def test_what_was_answered_is_kept_through_a_kill_in_mid_work(own: ClusterProcess) -> None:
    with api_of(own) as api:
        begun = int(api.get(MAPS).json()["metadata"]["resourceVersion"])
        query = {"watch": "true", "resourceVersion": str(begun)}
        with api.stream("GET", MAPS, params=query) as watch:
            lines = watch.iter_lines()
            answered = [make(api, f"map-{number}").json() for number in range(50)]
            seen = [event(lines)["object"] for _ in range(50)]
            assert seen == answered
            api.delete(f"{MAPS}/map-7")
            assert event(lines)["type"] == "DELETED"
            own.stop(kill=True)
            with pytest.raises((httpx.HTTPError, StopIteration)):
                next(lines)
    own.start()
    with api_of(own) as api:
        listed = api.get(MAPS).json()
        kept = {item["metadata"]["name"]: item for item in listed["items"]}
        for obj in answered:
            assert kept.get(obj["metadata"]["name"]) == (None if obj["metadata"]["name"] == "map-7" else obj)
        version = int(listed["metadata"]["resourceVersion"])
        assert version > int(answered[-1]["metadata"]["resourceVersion"]), "a deletion counts too"
        # A client that goes on from before the kill is told to list again, or misses nothing.
        with api.stream("GET", MAPS, params=query) as watch:
            assert event(watch.iter_lines())["object"]["code"] == 410
        with api.stream("GET", MAPS, params={**query, "resourceVersion": str(version)}) as watch:
            made = make(api, "map-7").json()
            assert event(watch.iter_lines()) == {"type": "ADDED", "object": made}


def test_it_ends_with_watches_and_logs_open(own: ClusterProcess, tmp_path: Path) -> None:
    client, mark = client_of(own), f"mark-of-{tmp_path.name}"
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    create_nodes(own, config)
    client.apply(SLEEPER.replace("MARK", mark))
    client.kubectl("rollout", "status", "deployment/sleeper", "--timeout=30s")
    (pod, *_) = client.kubectl("get", "pods", "-o", "name").split()
    command = [str(client.kubectl_path), "logs", "-f", pod]
    environment = {"KUBECONFIG": str(client.kubeconfig), "HOME": str(tmp_path)}
    with (
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as logs,
        api_of(own) as api,
        api.stream("GET", f"{MAPS}?watch=true") as watch,
    ):
        lines = watch.iter_lines()
        assert event(lines)["type"] == "ADDED"
        assert own.stop() == 0
        assert list(lines) == [], "the watch ends as one whose time is over"
        logs.communicate(timeout=LIMIT_S)
    assert processes(mark) == []
    assert "Traceback" not in own.log, own.log
    own.start()


def test_a_full_disk_is_told_and_then_all_goes_on(own: ClusterProcess) -> None:
    assert own.process is not None
    with api_of(own) as api:
        assert make(api, "before").status_code == 201
        limit(own.process.pid, 4096)
        refused = make(api, "during", size=200_000)
        status = refused.json()
        assert (refused.status_code, status["kind"], status["reason"]) == (500, "Status", "InternalError")
        assert "make room on the disk" in status["message"]
        assert api.delete(f"{MAPS}/before").status_code == 500
        assert api.get(f"{MAPS}/before").status_code == 200
        assert api.get(f"{MAPS}/during").status_code == 404
        limit(own.process.pid, resource.RLIM_INFINITY)
        assert make(api, "after", size=200_000).status_code == 201
        kept = [item["metadata"]["name"] for item in api.get(MAPS).json()["items"]]
    own.stop(kill=True)
    own.start()
    with api_of(own) as api:
        assert [item["metadata"]["name"] for item in api.get(MAPS).json()["items"]] == kept


def limit(pid: int, size: int) -> None:
    """Let a process write no file beyond `size`, as on a disk without room."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.parametrize("damage", ["cut", "overwritten"])
def test_a_damaged_database_is_named_and_what_to_do(own: ClusterProcess, damage: str) -> None:
    with api_of(own) as api:
        for number in range(20):
            make(api, f"map-{number}", size=2000)
    assert own.stop() == 0
    database, whole = own.folder.database, own.folder.database.read_bytes()
    database.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"nothing of the sort" * 500)
    network = ["--network", own.network]
    ports = ["--api-port", str(own.access.api_port), "--charts-port", str(own.access.charts_port)]
    done = subprocess.run(
        [sys.executable, "-m", "gpuworkshop", "lab", "serve", *network, *ports],
        env={"PATH": "", "GPUWORKSHOP_STATE": str(own.settings.state)},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("LabError: opening the lab's cluster: ")
    assert str(database) in done.stderr
    assert "gpuworkshop lab reset" in done.stderr
    assert "Traceback" not in done.stderr
    database.write_bytes(whole)
    own.start()
