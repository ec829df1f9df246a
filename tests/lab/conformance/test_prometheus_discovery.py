"""A real Prometheus discovers by each of its roles."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from own_cluster import Client

from gpuworkshop.processes.ports import free_port

pytestmark = pytest.mark.real
ROLES = ("node", "pod", "service", "endpoints", "endpointslice", "ingress")


@pytest.fixture
def discovered(client: Client, prometheus: Path, namespace: str, tmp_path: Path) -> Iterator[str]:
    config = {
        "scrape_configs": [
            {
                "job_name": role,
                "kubernetes_sd_configs": [{"role": role, "kubeconfig_file": str(client.kubeconfig)}],
            }
            for role in ROLES
        ]
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    url = f"127.0.0.1:{free_port()}"
    command = [
        str(prometheus),
        f"--config.file={tmp_path / 'prometheus.yml'}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address={url}",
        "--scrape.discovery-reload-interval=1s",
    ]
    log = (tmp_path / "log").open("w")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield f"http://{url}"
    finally:
        process.terminate()
        process.wait()
        log.close()


def test_each_role(discovered: str, client: Client, namespace: str) -> None:
    n = ("-n", namespace)
    client.kubectl("create", "deployment", "web", "--image=nginx", "--port=80", *n)
    client.kubectl("expose", "deployment", "web", *n)
    client.kubectl("create", "ingress", "web", "--rule=example.org/*=web:80", *n)
    client.kubectl("rollout", "status", "deployment/web", "--timeout=30s", *n)
    wanted = set(ROLES) - {"node"}
    seen: dict[str, list[dict[str, str]]] = {}
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        seen = targets(discovered)
        found = {
            role
            for role in wanted
            if any(t.get("__meta_kubernetes_namespace") == namespace for t in seen.get(role, []))
        }
        if found == wanted and seen.get("node"):
            break
        time.sleep(0.3)
    else:
        pytest.fail(f"only {found} were discovered")
    nodes = {t["__meta_kubernetes_node_name"] for t in seen["node"]}
    assert len(nodes) == 3
    pod = next(t for t in seen["pod"] if t["__meta_kubernetes_namespace"] == namespace)
    assert pod["__meta_kubernetes_pod_node_name"] in nodes
    assert pod["__meta_kubernetes_pod_container_name"] == "nginx"
    assert pod["__meta_kubernetes_pod_phase"] == "Running"
    endpoint = next(t for t in seen["endpoints"] if t["__meta_kubernetes_namespace"] == namespace)
    assert endpoint["__meta_kubernetes_service_name"] == "web"
    assert endpoint["__meta_kubernetes_pod_name"].startswith("web-")


def targets(url: str) -> dict[str, list[dict[str, str]]]:
    try:
        active = httpx.get(f"{url}/api/v1/targets").json()["data"]["activeTargets"]
    except httpx.HTTPError:
        return {}
    found: dict[str, list[dict[str, str]]] = {}
    for target in active:
        found.setdefault(target["scrapePool"], []).append(target["discoveredLabels"])
    return found
