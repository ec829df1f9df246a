"""The manifests on the rehearsal cluster, by the real kubectl: applied, ready, applied again, deleted."""

from __future__ import annotations

from typing import Any

import pytest
from own_cluster import Client

from gpuworkshop.deploy import manifests
from gpuworkshop.deploy.kubectl import Kubectl
from gpuworkshop.errors import KubectlError

pytestmark = pytest.mark.real
EVERY = sorted(path.stem for path in manifests.FOLDER.glob("*.yaml"))
# They are on every cluster of the lab from its creation on, and other tests rely on them.
STANDING = {"device-plugin", "dcgm-exporter", "eks-addons"}
WORKLOADS = ("Deployment", "DaemonSet")
LIMIT_S = 60


@pytest.fixture
def kubectl(client: Client) -> Kubectl:
    """The workshop's own runner, on the test run's cluster."""
    return Kubectl(client.kubectl_path, client.kubeconfig)


def await_ready(kubectl: Kubectl, objects: list[dict[str, Any]]) -> None:
    """Wait for the objects that have pods, or are some."""
    for each in objects:
        name, namespace = each["metadata"]["name"], each["metadata"].get("namespace", "default")
        if each["kind"] in WORKLOADS:
            what = f"{each['kind'].lower()}/{name}"
            kubectl.run(
                "rollout", "status", what, "-n", namespace, f"--timeout={LIMIT_S}s", timeout_s=LIMIT_S
            )
        elif each["kind"] == "Pod":
            kubectl.wait("pod", name, "-n", namespace, condition="Ready", timeout_s=LIMIT_S)


def pods(kubectl: Kubectl) -> dict[str, str]:
    """Every pod that is not about to go, by its uid."""
    found = kubectl.get("pods", "--all-namespaces")
    return {
        pod["metadata"]["uid"]: pod["metadata"]["name"]
        for pod in found
        if "deletionTimestamp" not in pod["metadata"]
    }


@pytest.mark.parametrize("name", EVERY)
def test_a_manifest_becomes_ready_and_can_be_applied_again(kubectl: Kubectl, name: str) -> None:
    objects = manifests.load(name)
    try:
        said = kubectl.apply(objects)
        assert said.count("serverside-applied") == len(objects)
        await_ready(kubectl, objects)
        before = pods(kubectl)
        kubectl.apply(objects)
        await_ready(kubectl, objects)
        assert pods(kubectl) == before
    finally:
        if name not in STANDING:
            kubectl.delete_manifests(objects)
    if name not in STANDING:
        assert kubectl.delete_manifests(objects) == ""
        for each in objects:
            where = ("-n", each["metadata"].get("namespace", "default"))
            assert kubectl.get(each["kind"], each["metadata"]["name"], *where) == []


def test_a_refusal_is_in_kubectls_words(kubectl: Kubectl) -> None:
    pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "typo"}}
    with pytest.raises(
        KubectlError, match=r'unknown field "spec\.containres"|spec\.containres: .* not defined'
    ):
        kubectl.apply([{**pod, "spec": {"containres": []}}])
    with pytest.raises(KubectlError, match=r"spec\.containers: Required value") as refused:
        kubectl.apply([{**pod, "spec": {}}])
    assert str(refused.value).startswith("kubectl apply --server-side")
    assert kubectl.get("pods", "typo") == []
    assert 'pods "typo" not found' in kubectl.say("get", "pod", "typo")


def test_waiting_in_vain(kubectl: Kubectl, namespace: str) -> None:
    kubectl.run("create", "quota", "none", "--hard=pods=0", "-n", namespace)
    kubectl.run("create", "deployment", "web", "--image=nginx", "-n", namespace)
    with pytest.raises(KubectlError, match="timed out waiting"):
        kubectl.wait("deployment", "web", "-n", namespace, condition="Available", timeout_s=1)
