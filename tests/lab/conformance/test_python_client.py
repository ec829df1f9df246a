"""The Python client: typed, dynamic, watch and stream."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from own_cluster import Client

kubernetes = pytest.importorskip("kubernetes")
# The client leaves the sockets of its streams to the garbage collector.
pytestmark = [
    pytest.mark.real,
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture
def api(client: Client) -> Iterator[Any]:
    from kubernetes import config

    with config.new_client_from_config(str(client.kubeconfig)) as api:
        yield api
    gc.collect()


def test_typed(api: Any, namespace: str) -> None:
    from kubernetes.client import ApiException, CoreV1Api, V1ConfigMap, V1ObjectMeta

    core = CoreV1Api(api)
    made = core.create_namespaced_config_map(
        namespace, V1ConfigMap(metadata=V1ObjectMeta(generate_name="x-"), data={"a": "1"})
    )
    assert made.metadata.name.startswith("x-")
    assert core.read_namespaced_config_map(made.metadata.name, namespace).data == {"a": "1"}
    patched = core.patch_namespaced_config_map(made.metadata.name, namespace, {"data": {"b": "2"}})
    assert patched.data == {"a": "1", "b": "2"}
    core.delete_namespaced_config_map(made.metadata.name, namespace)
    with pytest.raises(ApiException) as caught:
        core.read_namespaced_config_map(made.metadata.name, namespace)
    assert caught.value.status == 404
    assert len(core.list_node().items) == 3
    assert core.list_node().items[0].status.node_info.kubelet_version.startswith("v1.")


def test_pages(api: Any, namespace: str) -> None:
    from kubernetes.client import CoreV1Api

    core = CoreV1Api(api)
    for n in range(7):
        core.create_namespaced_config_map(namespace, {"metadata": {"name": f"x-{n}"}})
    seen, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(namespace, limit=3, _continue=token)
        assert len(page.items) <= 3
        seen += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert seen == sorted(["kube-root-ca.crt", *(f"x-{n}" for n in range(7))])


def test_watch(api: Any, namespace: str) -> None:
    from kubernetes import watch
    from kubernetes.client import CoreV1Api

    core = CoreV1Api(api)
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    for n in range(3):
        core.create_namespaced_config_map(namespace, {"metadata": {"name": f"x-{n}"}})
    core.delete_namespaced_config_map("x-1", namespace)
    watching = watch.Watch()
    seen = []
    stream = watching.stream(
        core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=20
    )
    for event in stream:
        if event["object"].metadata.name.startswith("x-"):
            seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 4:
            watching.stop()
    assert seen == [("ADDED", "x-0"), ("ADDED", "x-1"), ("ADDED", "x-2"), ("DELETED", "x-1")]


def test_dynamic(api: Any, namespace: str) -> None:
    from kubernetes.dynamic import DynamicClient

    dynamic = DynamicClient(api)
    deployments = dynamic.resources.get(api_version="apps/v1", kind="Deployment")
    labels = {"app": "x"}
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "x"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        },
    }
    deployments.create(body=body, namespace=namespace)
    assert deployments.get(name="x", namespace=namespace).spec.replicas == 1
    deployments.server_side_apply(
        body={**body, "metadata": {"name": "x", "labels": {"t": "1"}}},
        namespace=namespace,
        field_manager="test",
        force_conflicts=True,
    )
    assert deployments.get(name="x", namespace=namespace).metadata.labels.t == "1"
    deployments.delete(name="x", namespace=namespace)


def test_stream(api: Any, client: Client, namespace: str) -> None:
    from kubernetes.client import CoreV1Api
    from kubernetes.stream import stream

    client.kubectl("run", "web", "--image=nginx", "-n", namespace)
    client.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=30s", "-n", namespace)
    core = CoreV1Api(api)
    said = stream(
        core.connect_get_namespaced_pod_exec,
        "web",
        namespace,
        command=["sh", "-c", "echo hello"],
        stderr=True,
        stdin=False,
        stdout=True,
        tty=False,
    )
    assert said == "hello\n"
