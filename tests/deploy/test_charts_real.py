"""The charts in the real helm's hands, on a cluster of their own: installed, working, repeated, gone."""

from __future__ import annotations

import base64
import gzip
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from own_cluster import CONFIG, Client, ClusterProcess, client_of, create_nodes, new_cluster

from gpuworkshop.metrics.exposition import parse_exposition
from gpuworkshop.settings import Settings

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]
LIMIT_S = 60.0
OPERATOR, STACK = "gpu-operator", "kube-prometheus-stack"
CONFIGS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: counters, namespace: gpu-operator}
data:
  dcgm-metrics.csv: |
    DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).
---
apiVersion: v1
kind: ConfigMap
metadata: {name: time-slicing, namespace: gpu-operator}
data:
  any: |
    version: v1
    sharing:
      timeSlicing:
        resources:
          - {name: nvidia.com/gpu, replicas: 4}
"""
# What the workshop sets.
OPERATOR_VALUES = {
    "driver": {"enabled": False},
    "toolkit": {"enabled": False},
    "dcgmExporter": {
        "env": [{"name": "DCGM_EXPORTER_INTERVAL", "value": "1000"}],
        "config": {"name": "counters"},
        "serviceMonitor": {"enabled": True, "interval": "1s", "additionalLabels": {"release": STACK}},
    },
}
JOB = {
    "job_name": "gpu-metrics",
    "scrape_interval": "1s",
    "kubernetes_sd_configs": [{"role": "endpoints", "namespaces": {"names": [OPERATOR]}}],
    "relabel_configs": [
        {
            "source_labels": ["__meta_kubernetes_endpoints_name"],
            "regex": "nvidia-dcgm-exporter",
            "action": "keep",
        },
        {"source_labels": ["__meta_kubernetes_pod_node_name"], "target_label": "kubernetes_node"},
    ],
}
STACK_VALUES = {"prometheus": {"prometheusSpec": {"additionalScrapeConfigs": [JOB]}}}


@pytest.fixture(scope="module")
def lab(
    settings: Settings, prometheus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterProcess]:
    """A cluster of this module's own, as it is before the operator comes."""
    process = new_cluster(settings, tmp_path_factory.mktemp("charts"))
    process.start()
    try:
        config = process.folder.path / "config.yaml"
        config.write_text(CONFIG)
        create_nodes(process, config)
        client = client_of(process)
        # As in the walkthrough: the operator brings a device plugin of its own.
        client.kubectl("delete", "daemonset", "nvidia-device-plugin-daemonset", "-n", "kube-system")
        client.kubectl("create", "namespace", OPERATOR)
        client.apply(CONFIGS)
        for name in ("nvidia", "prometheus-community"):
            client.helm("repo", "add", name, f"{process.access.charts_url}/{name}")
        yield process
    finally:
        process.stop()
    assert "Traceback" not in process.log, process.log


@pytest.fixture(scope="module")
def helm(lab: ClusterProcess) -> Client:
    """kubectl and helm on it, with the repositories added."""
    return client_of(lab)


def install(client: Client, release: str, repository: str, values: dict[str, Any], *more: str) -> str:
    """The command of the workshop."""
    file = client.home / f"{release}.yaml"
    file.write_text(yaml.safe_dump(values))
    namespace = ("-n", OPERATOR if release == OPERATOR else "prometheus", "--create-namespace")
    chart = f"{repository}/{release}"
    return client.helm("upgrade", "--install", release, chart, *namespace, "--wait", "-f", file, *more)


@pytest.fixture(scope="module")
def stack(helm: Client) -> str:
    """kube-prometheus-stack is installed; the path of its Prometheus's API."""
    install(helm, STACK, "prometheus-community", STACK_VALUES)
    return f"/api/v1/namespaces/prometheus/services/{STACK}-prometheus:http-web/proxy/api/v1"


@pytest.fixture(scope="module")
def operator(helm: Client, stack: str) -> Client:
    """The operator is installed, after the stack, and its exporters run."""
    install(helm, OPERATOR, "nvidia", OPERATOR_VALUES)
    eventually(lambda: daemonset(helm, "nvidia-dcgm-exporter")["desiredNumberScheduled"] == 2)
    helm.kubectl("rollout", "status", "daemonset/nvidia-dcgm-exporter", "-n", OPERATOR, "--timeout=60s")
    return helm


def eventually(holds: Callable[[], Any]) -> Any:
    """Ask until there is something: controllers have no event for a client."""
    deadline = time.monotonic() + LIMIT_S
    while not (found := holds()):
        assert time.monotonic() < deadline, holds
        time.sleep(0.2)
    return found


def daemonset(client: Client, name: str) -> dict[str, Any]:
    return dict(client.json("get", "daemonset", name, "-n", OPERATOR)["status"])


def gpu_nodes(client: Client) -> dict[str, str | None]:
    """How many GPUs each node with GPUs offers."""
    nodes = client.json("get", "nodes", "-l", "node.kubernetes.io/instance-type=g5.12xlarge")["items"]
    return {node["metadata"]["name"]: node["status"]["allocatable"].get("nvidia.com/gpu") for node in nodes}


def query(client: Client, api: str, promql: str) -> list[dict[str, str]]:
    """The labels of what a query finds."""
    answer = json.loads(client.kubectl("get", "--raw", f"{api}/query?query={quote(promql)}"))
    return [series["metric"] for series in answer["data"]["result"]]


def state(client: Client) -> dict[str, int | str]:
    """What a release that is only repeated must not change: generations of owners, and pods."""
    kinds = "deployments,daemonsets,statefulsets,services,serviceaccounts,configmaps,pods"
    found = client.json("get", kinds, "--all-namespaces")["items"]
    return {each["metadata"]["uid"]: each["metadata"].get("generation", 1) for each in found}


def test_exporters_run_on_the_nodes_with_gpus(operator: Client) -> None:
    pods = operator.json("get", "pods", "-n", OPERATOR, "-l", "app=nvidia-dcgm-exporter")["items"]
    assert {pod["spec"]["nodeName"] for pod in pods} == gpu_nodes(operator).keys()
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}


def test_the_cluster_policy_is_ready(operator: Client) -> None:
    eventually(lambda: "ready" in operator.kubectl("get", "clusterpolicies").split())


def test_metrics_through_the_service_proxy(operator: Client) -> None:
    path = f"/api/v1/namespaces/{OPERATOR}/services/nvidia-dcgm-exporter:gpu-metrics/proxy/metrics"
    families = parse_exposition(operator.kubectl("get", "--raw", path))
    (utilisation,) = (family for family in families if family.name == "DCGM_FI_DEV_GPU_UTIL")
    assert {sample.labels["modelName"] for sample in utilisation.samples} == {"NVIDIA A10G"}
    assert len({sample.labels["gpu"] for sample in utilisation.samples}) == 4
    assert {sample.labels["hostname"] for sample in utilisation.samples} <= gpu_nodes(operator).keys()


def test_prometheus_scrapes_by_the_additional_job(operator: Client, stack: str) -> None:
    promql = 'DCGM_FI_DEV_GPU_UTIL{job="gpu-metrics"}'
    eventually(lambda: len(query(operator, stack, promql)) == 8)
    found = query(operator, stack, promql)
    assert {labels["kubernetes_node"] for labels in found} == gpu_nodes(operator).keys()


def test_prometheus_scrapes_by_the_service_monitor(operator: Client, stack: str) -> None:
    monitors = operator.kubectl("get", "servicemonitors", "-n", OPERATOR, "-o", "name")
    assert monitors == "servicemonitor.monitoring.coreos.com/nvidia-dcgm-exporter\n"
    promql = 'DCGM_FI_DEV_GPU_UTIL{job="nvidia-dcgm-exporter"}'
    eventually(lambda: len(query(operator, stack, promql)) == 8)


def test_twice_in_a_row_changes_nothing(operator: Client, stack: str) -> None:
    before = state(operator)
    install(operator, STACK, "prometheus-community", STACK_VALUES)
    install(operator, OPERATOR, "nvidia", OPERATOR_VALUES)
    assert state(operator) == before
    history = json.loads(operator.helm("history", OPERATOR, "-n", OPERATOR, "-o", "json"))
    assert [entry["status"] for entry in history] == ["superseded", "deployed"]


def test_a_release_is_kept_in_a_secret(operator: Client) -> None:
    secrets = operator.json("get", "secrets", "-n", OPERATOR, "-l", f"owner=helm,name={OPERATOR}")["items"]
    assert {secret["type"] for secret in secrets} == {"helm.sh/release.v1"}
    # helm compresses it and writes it in base64, and the API does so once more.
    packed = base64.b64decode(base64.b64decode(secrets[0]["data"]["release"]))
    release = json.loads(gzip.decompress(packed))
    assert (release["name"], release["namespace"]) == (OPERATOR, OPERATOR)
    assert release["config"] == OPERATOR_VALUES
    assert "nvidia-dcgm-exporter" in release["manifest"]


def test_a_new_job_is_scraped_without_a_restart(operator: Client, stack: str) -> None:
    pod = ("get", "pod", f"prometheus-{STACK}-prometheus-0", "-n", "prometheus")
    before = operator.json(*pod)
    more = {**JOB, "job_name": "again"}
    values = {"prometheus": {"prometheusSpec": {"additionalScrapeConfigs": [JOB, more]}}}
    install(operator, STACK, "prometheus-community", values)
    eventually(lambda: query(operator, stack, 'up{job="again"} == 1'))
    assert operator.json(*pod)["metadata"]["uid"] == before["metadata"]["uid"]


def test_time_slicing_offers_each_gpu_four_times(operator: Client) -> None:
    eventually(lambda: set(gpu_nodes(operator).values()) == {"4"})
    sliced = {**OPERATOR_VALUES, "devicePlugin": {"config": {"name": "time-slicing", "default": "any"}}}
    install(operator, OPERATOR, "nvidia", sliced)
    eventually(lambda: set(gpu_nodes(operator).values()) == {"16"})
    install(operator, OPERATOR, "nvidia", OPERATOR_VALUES)
    eventually(lambda: set(gpu_nodes(operator).values()) == {"4"})


def test_uninstalling_leaves_nothing_but_the_crds(operator: Client, stack: str) -> None:
    operator.helm("uninstall", OPERATOR, "-n", OPERATOR, "--wait")
    operator.helm("uninstall", STACK, "-n", "prometheus", "--wait")
    eventually(lambda: operator.kubectl("get", "all", "-n", OPERATOR) == "")
    eventually(lambda: operator.kubectl("get", "all", "-n", "prometheus") == "")
    kinds = "configmaps,secrets,serviceaccounts,clusterpolicies,servicemonitors,prometheuses"
    left = operator.json("get", kinds, "--all-namespaces")["items"]
    ours = {
        each["metadata"]["name"] for each in left if each["metadata"]["namespace"] in (OPERATOR, "prometheus")
    }
    assert ours == {"counters", "time-slicing", "kube-root-ca.crt", "default"}
    roles = operator.kubectl("get", "clusterroles,clusterrolebindings", "-o", "name")
    assert not [name for name in roles.splitlines() if OPERATOR in name or STACK in name]
    crds = operator.kubectl("get", "crds", "-o", "name")
    assert "clusterpolicies.nvidia.com" in crds
    assert "prometheuses.monitoring.coreos.com" in crds
    eventually(lambda: set(gpu_nodes(operator).values()) <= {None, "0"})
