"""The charts and manifests on a rehearsal cluster, put there by the runners as a step would."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from own_cluster import CONFIG, ClusterProcess, create_nodes, new_cluster

from gpuworkshop.deploy import manifests
from gpuworkshop.deploy.helm import Helm
from gpuworkshop.deploy.kubectl import Kubectl
from gpuworkshop.errors import DeployError
from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

pytestmark = [pytest.mark.real, pytest.mark.full]
LIMIT_S = 60.0
OPERATOR = "gpu-operator"
ON_EKS = {"driver": {"enabled": False}, "toolkit": {"enabled": False}, "devicePlugin": {"enabled": False}}


@pytest.fixture(scope="module")
def own(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """A cluster of this module's own: what the operator does, it does to all nodes."""
    process = new_cluster(settings, tmp_path_factory.mktemp("deployed"))
    process.start()
    try:
        config = process.folder.path / "config.yaml"
        config.write_text(CONFIG)
        create_nodes(process, config)
        yield process
    finally:
        process.stop()
    assert "Traceback" not in process.log, process.log


@pytest.fixture(scope="module")
def kubectl(own: ClusterProcess) -> Kubectl:
    """kubectl, as a step runs it."""
    return Kubectl(find_or_fetch("kubectl", own.settings), own.folder.kubeconfig)


@pytest.fixture(scope="module")
def helm(own: ClusterProcess) -> Helm:
    """helm, with the lab's repositories."""
    found = Helm(find_or_fetch("helm", own.settings), own.folder.kubeconfig, own.folder.path / "helm")
    for name in ("nvidia", "prometheus-community", "gpuworkshop"):
        found.add_repository(name, f"{own.access.charts_url}/{name}")
    return found


def until(look: Callable[[], Any]) -> Any:
    """What `look` finds once it finds something; kubectl has no event for it, so that it is asked again."""
    deadline = time.monotonic() + LIMIT_S
    while not (found := look()):
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.2)
    return found


def gpu_nodes(kubectl: Kubectl) -> list[dict[str, Any]]:
    return kubectl.get("nodes", "-l", "gpuworkshop.io/gpu=true")


def pods(kubectl: Kubectl, namespace: str, app: str) -> list[dict[str, Any]]:
    return kubectl.get("pods", "-n", namespace, "-l", app, "--field-selector=status.phase=Running")


@pytest.fixture(scope="module")
def operator(helm: Helm, kubectl: Kubectl) -> None:
    """The operator, as on EKS, and its exporter on both GPU nodes."""
    helm.upgrade(OPERATOR, f"nvidia/{OPERATOR}", OPERATOR, values=ON_EKS, version="26.7.0")
    until(lambda: len(pods(kubectl, OPERATOR, "app=nvidia-dcgm-exporter")) == 2)


@pytest.mark.usefixtures("operator")
def test_the_operator_labels_the_nodes_that_have_gpus(kubectl: Kubectl) -> None:
    until(lambda: all("nvidia.com/gpu.product" in n["metadata"]["labels"] for n in gpu_nodes(kubectl)))
    for node in kubectl.get("nodes"):
        labels = node["metadata"]["labels"]
        has = "gpuworkshop.io/gpu" in labels
        assert (labels.get("nvidia.com/gpu.present") == "true") == has
        assert (labels.get("nvidia.com/gpu.product") == "NVIDIA-A10G") == has


@pytest.mark.usefixtures("operator")
def test_the_validator_has_run_its_init_containers(kubectl: Kubectl) -> None:
    (first, *_) = until(lambda: pods(kubectl, OPERATOR, "app=nvidia-operator-validator"))
    finished = first["status"]["initContainerStatuses"]
    assert [status["name"] for status in finished] == [
        f"{what}-validation" for what in ("driver", "toolkit", "cuda", "plugin")
    ]
    assert all(status["state"]["terminated"]["exitCode"] == 0 for status in finished)


@pytest.mark.usefixtures("operator")
def test_installing_again_upgrades_the_one_release(helm: Helm) -> None:
    before = {release["name"]: int(release["revision"]) for release in helm.releases(OPERATOR)}
    helm.upgrade(OPERATOR, f"nvidia/{OPERATOR}", OPERATOR, values=ON_EKS)
    (release,) = helm.releases(OPERATOR)
    assert (release["status"], int(release["revision"])) == ("deployed", before[OPERATOR] + 1)
    assert release["chart"] == "gpu-operator-26.7.0+lab"


def test_gpu_burn_comes_from_the_repository_and_holds_a_gpu(helm: Helm, kubectl: Kubectl) -> None:
    values = {"onSeconds": 1, "offSeconds": 1}
    helm.upgrade("burner", "gpuworkshop/gpu-burn", "burning", values=values)
    (pod,) = pods(kubectl, "burning", "app.kubernetes.io/instance=burner")
    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    said = until(lambda: kubectl.run("logs", "-n", "burning", pod["metadata"]["name"]))
    assert "1 s on, 1 s off (simulated: no GPU is used)" in said
    for _ in range(2):  # the second time there is nothing to do
        helm.uninstall("burner", "burning")
        assert helm.releases("burning") == []


@pytest.mark.parametrize("name", ["eks-addons", "device-plugin", "dcgm-exporter", "three-pods", "gpu-burn"])
def test_every_manifest_is_strictly_valid(kubectl: Kubectl, name: str) -> None:
    said = kubectl.run("create", "--dry-run=client", "--validate=strict", "-f", str(manifests.path(name)))
    assert len(said.splitlines()) == len(manifests.load(name))


def test_what_a_fresh_cluster_runs(kubectl: Kubectl) -> None:
    """As many of each as there are nodes that it is for: three, of which two have GPUs."""
    wanted = {"aws-node": 3, "kube-proxy": 3, "nvidia-device-plugin-daemonset": 2}
    found = {
        each["metadata"]["name"]: each["status"] for each in kubectl.get("daemonsets", "-n", "kube-system")
    }
    assert {name: found[name]["desiredNumberScheduled"] for name in wanted if name in found} | {
        "nvidia-device-plugin-daemonset": 2
    } == wanted
    (exporter,) = kubectl.get("daemonsets", "-n", "gpu-metrics")
    assert exporter["status"]["desiredNumberScheduled"] == 2


def test_a_chart_that_is_not_there(helm: Helm) -> None:
    with pytest.raises(DeployError, match='chart "none"'):
        helm.upgrade("none", "nvidia/none", "default")


def test_a_release_that_never_becomes_ready_is_told(helm: Helm, kubectl: Kubectl, tmp_path: Path) -> None:
    chart = tmp_path / "never"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: never\nversion: 1.0.0\n")
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: never}\nspec:\n  nodeSelector: {a: b}\n"
    (chart / "templates" / "pod.yaml").write_text(pod + "  containers: [{name: c, image: nginx}]\n")
    with pytest.raises(DeployError) as caught:
        helm.upgrade("never", str(chart), "default", timeout_s=2)
    assert caught.value.step.startswith("helm upgrade --install never")
    kubectl.delete("pod", "never", "--now")
