"""helm 4: install, upgrade, roll back, uninstall; a chart that `helm create` makes; hooks and CRDs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from own_cluster import Client, ClusterProcess

pytestmark = pytest.mark.real


def test_a_chart_made_by_helm_create(client: Client, namespace: str, tmp_path: Path) -> None:
    n = ("-n", namespace)
    client.helm("create", tmp_path / "web")
    said = client.helm("install", "web", tmp_path / "web", "--wait", "--timeout", "60s", *n)
    assert "STATUS: deployed" in said
    assert client.json("get", "deployment", "web", *n)["status"]["readyReplicas"] == 1
    client.helm(
        "upgrade", "web", tmp_path / "web", "--set", "replicaCount=2", "--wait", "--timeout", "60s", *n
    )
    assert client.json("get", "deployment", "web", *n)["status"]["readyReplicas"] == 2
    history = json.loads(client.helm("history", "web", "-o", "json", *n))
    assert [entry["status"] for entry in history] == ["superseded", "deployed"]
    client.helm("rollback", "web", "1", "--wait", "--timeout", "60s", *n)
    assert client.json("get", "deployment", "web", *n)["spec"]["replicas"] == 1
    assert "web" in client.helm("list", *n)
    client.helm("uninstall", "web", "--wait", "--timeout", "60s", *n)
    assert client.kubectl("get", "all", *n, "-l", "app.kubernetes.io/instance=web") == ""


def test_dry_run_on_the_server(client: Client, namespace: str, tmp_path: Path) -> None:
    client.helm("create", tmp_path / "web")
    said = client.helm("install", "web", tmp_path / "web", "--dry-run=server", "-n", namespace)
    assert "kind: Deployment" in said
    assert client.kubectl("get", "all", "-n", namespace) == ""


CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.helm.test.gpuworkshop.io}
spec:
  group: helm.test.gpuworkshop.io
  names: {kind: Lamp, plural: lamps}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: before
  annotations: {"helm.sh/hook": pre-install, "helm.sh/hook-delete-policy": hook-succeeded}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: "python:3.12-slim", command: [python, -c, "print('before')"]}]
"""


def test_a_chart_with_a_hook_and_a_crd(client: Client, namespace: str, tmp_path: Path) -> None:
    chart = tmp_path / "lamps"
    (chart / "crds").mkdir(parents=True)
    (chart / "templates").mkdir()
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: lamps\nversion: 1.0.0\n")
    (chart / "crds" / "lamps.yaml").write_text(CRD)
    (chart / "templates" / "hook.yaml").write_text(HOOK)
    (chart / "templates" / "lamp.yaml").write_text(
        "apiVersion: helm.test.gpuworkshop.io/v1\nkind: Lamp\nmetadata: {name: one}\nspec: {bright: true}\n"
    )
    client.helm("install", "lamps", chart, "--wait", "--timeout", "60s", "-n", namespace)
    assert client.json("get", "lamp", "one", "-n", namespace)["spec"] == {"bright": True}
    assert client.kubectl("get", "jobs", "-n", namespace) == ""
    client.helm("uninstall", "lamps", "-n", namespace)
    client.kubectl("delete", "crd", "lamps.helm.test.gpuworkshop.io")


def test_the_workshops_charts_come_from_a_repository(
    client: Client, cluster: ClusterProcess, namespace: str
) -> None:
    url = cluster.access.charts_url
    client.helm("repo", "add", "nvidia", f"{url}/nvidia", "--force-update")
    client.helm("repo", "add", "prometheus-community", f"{url}/prometheus-community", "--force-update")
    client.helm("repo", "update")
    found = json.loads(client.helm("search", "repo", "-o", "json"))
    assert {chart["name"] for chart in found} >= {
        "nvidia/gpu-operator",
        "prometheus-community/kube-prometheus-stack",
    }
