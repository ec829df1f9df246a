"""What labels nodes get, and from whom; the ClusterPolicy's state; two device plugins at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from gpuworkshop.deploy import charts
from gpuworkshop.lab.api.kinds import CONFIG_MAP, CRD, DAEMON_SET, EVENT, NAMESPACE, NODE, POD
from gpuworkshop.lab.api.objects import Object, labels_of, name_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.store import Store
from gpuworkshop.lab.controllers.loop import Controller, Key
from gpuworkshop.lab.nodes.cluster_policy import ClusterPolicyController
from gpuworkshop.lab.nodes.controllers import node_controllers
from gpuworkshop.lab.nodes.device_plugins import DevicePluginController
from gpuworkshop.lab.nodes.operator import GpuOperatorController

NVIDIA = "nvcr.io/nvidia"
OPERATOR = f"{NVIDIA}/gpu-operator:v26.7.0"
NODE_FEATURES = "registry.k8s.io/nfd/node-feature-discovery:v0.18.0"
GPU_FEATURES = f"{NVIDIA}/gpu-feature-discovery:v0.20.0"
PLUGIN = f"{NVIDIA}/k8s-device-plugin:v0.20.0"
CARD = "feature.node.kubernetes.io/pci-10de.present"


def new_registry(*instance_types: str) -> Registry:
    """A cluster with nodes n0, n1 … of those types."""
    registry = Registry(Store(":memory:"))
    registry.create(NAMESPACE, {"metadata": {"name": "gpu"}})
    for number, instance_type in enumerate(instance_types):
        labels = {"node.kubernetes.io/instance-type": instance_type}
        registry.create(NODE, {"metadata": {"name": f"n{number}", "labels": labels}})
    return registry


def add_pod(
    registry: Registry, name: str, image: str, node: str = "n0", *, up: bool = True, **spec: Any
) -> Object:
    container = {"name": spec.pop("container", "main"), "image": image}
    pod = {
        "metadata": {"name": name, "namespace": "gpu"},
        "spec": {"nodeName": node, "containers": [container], **spec},
    }
    registry.create(POD, pod)
    conditions = [{"type": "Ready", "status": str(up)}]
    phase = "Running" if up else "Pending"

    def run(live: Object) -> None:
        live["status"] = {"phase": phase, "conditions": conditions}

    changed = registry.modify(POD, "gpu", name, run, "status")
    assert changed is not None
    return changed


def look(controller: Controller, registry: Registry, *key: str) -> None:
    assert controller.reconcile(registry, key or ("", "n0")) is None


def labelled(registry: Registry, node: str = "n0") -> Mapping[str, str]:
    """The node's labels after the operator's controller has looked at it."""
    look(GpuOperatorController(), registry, "", node)
    return labels_of(registry.get(NODE, "", node))


def test_nothing_is_labelled_while_nobody_runs() -> None:
    registry = new_registry("g5.xlarge")
    add_pod(registry, "operator", OPERATOR, up=False)
    add_pod(registry, "nfd", NODE_FEATURES, up=False)
    before = registry.store.revision
    assert labelled(registry) == {"node.kubernetes.io/instance-type": "g5.xlarge"}
    assert registry.store.revision == before


def test_discovery_finds_the_card_and_the_operator_says_what_is_to_run() -> None:
    registry = new_registry("g5.xlarge")
    add_pod(registry, "nfd", NODE_FEATURES)
    assert labelled(registry)[CARD] == "true"
    assert "nvidia.com/gpu.present" not in labelled(registry)
    add_pod(registry, "operator", OPERATOR, "elsewhere")
    labels = labelled(registry)
    assert labels["nvidia.com/gpu.present"] == "true"
    assert labels["nvidia.com/gpu.deploy.dcgm-exporter"] == "true"
    assert labels["nvidia.com/gpu.deploy.device-plugin"] == "true"
    assert labels["nvidia.com/gpu.deploy.driver"] == "pre-installed"
    assert "nvidia.com/gpu.deploy.mig-manager" not in labels, "an A10G has no MIG"
    assert "nvidia.com/gpu.product" not in labels
    before = registry.store.revision
    assert labelled(registry) == labels
    assert registry.store.revision == before, "nothing is written twice"


def test_without_discovery_the_operator_sees_no_gpus() -> None:
    registry = new_registry("g5.xlarge")
    add_pod(registry, "operator", OPERATOR)
    assert "nvidia.com/gpu.present" not in labelled(registry)


def test_the_validator_is_not_the_operator() -> None:
    registry = new_registry("g5.xlarge")
    add_pod(registry, "nfd", NODE_FEATURES)
    add_pod(registry, "validator", OPERATOR, container="nvidia-operator-validator")
    assert "nvidia.com/gpu.present" not in labelled(registry)


def test_a_node_without_gpus_is_only_described() -> None:
    registry = new_registry("m5.xlarge")
    for name, image in (("nfd", NODE_FEATURES), ("operator", OPERATOR), ("gfd", GPU_FEATURES)):
        add_pod(registry, name, image)
    labels = labelled(registry)
    assert labels["feature.node.kubernetes.io/system-os_release.ID"] == "amzn"
    assert not [label for label in labels if label.startswith("nvidia.com/") or label == CARD]


def test_a_node_of_an_unknown_type_and_one_that_is_gone_are_left_alone() -> None:
    registry = new_registry("x9.huge")
    add_pod(registry, "nfd", NODE_FEATURES)
    assert labelled(registry) == {"node.kubernetes.io/instance-type": "x9.huge"}
    look(GpuOperatorController(), registry, "", "none")


@pytest.mark.parametrize(
    ("instance_type", "expected"),
    [
        ("g4dn.12xlarge", {"count": "4", "product": "Tesla-T4", "memory": "15360", "family": "turing"}),
        ("p5en.48xlarge", {"count": "8", "product": "NVIDIA-H200", "memory": "143771", "family": "hopper"}),
        ("p4d.24xlarge", {"product": "NVIDIA-A100-SXM4-40GB", "compute.major": "8", "compute.minor": "0"}),
    ],
)
def test_gpu_features(instance_type: str, expected: Mapping[str, str]) -> None:
    registry = new_registry(instance_type)
    add_pod(registry, "gfd", GPU_FEATURES)
    labels = labelled(registry)
    assert {key: labels[f"nvidia.com/gpu.{key}"] for key in expected} == expected
    assert labels["nvidia.com/gpu.replicas"] == "1"
    assert labels["nvidia.com/gpu.sharing-strategy"] == "none"
    assert labels["nvidia.com/mig.capable"] == str(instance_type[0] == "p").lower()


def test_gpu_features_concern_the_pods_own_node() -> None:
    registry = new_registry("g5.xlarge", "g5.xlarge")
    add_pod(registry, "gfd", GPU_FEATURES, "n1")
    assert "nvidia.com/gpu.count" not in labelled(registry, "n0")
    assert labelled(registry, "n1")["nvidia.com/gpu.count"] == "1"


def test_time_slicing_shows_in_replicas_and_product() -> None:
    registry = new_registry("g5.xlarge")
    resources = [{"name": "nvidia.com/gpu", "replicas": 4}]
    config = {"version": "v1", "sharing": {"timeSlicing": {"resources": resources}}}
    metadata = {"name": "slicing", "namespace": "gpu"}
    registry.create(CONFIG_MAP, {"metadata": metadata, "data": {"any": yaml.safe_dump(config)}})
    add_pod(registry, "gfd", GPU_FEATURES, volumes=[{"name": "config", "configMap": {"name": "slicing"}}])
    labels = labelled(registry)
    assert labels["nvidia.com/gpu.replicas"] == "4"
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-A10G-SHARED"
    assert labels["nvidia.com/gpu.sharing-strategy"] == "time-slicing"


def test_labels_stay_when_the_pods_go() -> None:
    registry = new_registry("g5.xlarge")
    add_pod(registry, "nfd", NODE_FEATURES)
    assert labelled(registry)[CARD] == "true"
    registry.delete(POD, "gpu", "nfd", grace_period=0)
    assert labelled(registry)[CARD] == "true"


def keys(controller: Controller, registry: Registry, obj: Object) -> list[Key]:
    return list(controller.watches[POD](registry, obj))


def test_whom_a_pod_concerns() -> None:
    registry = new_registry("g5.xlarge", "m5.xlarge")
    operator, plugins = GpuOperatorController(), DevicePluginController()
    every: list[Key] = [("", "n0"), ("", "n1")]
    assert keys(operator, registry, add_pod(registry, "operator", OPERATOR, "n1")) == every
    assert keys(operator, registry, add_pod(registry, "nfd", NODE_FEATURES, "n1")) == [("", "n1")]
    plugin = add_pod(registry, "plugin", PLUGIN)
    assert keys(operator, registry, plugin) == []
    assert keys(plugins, registry, plugin) == [("", "n0")]
    assert keys(plugins, registry, add_pod(registry, "web", "nginx")) == []


def warnings(registry: Registry) -> dict[str, str]:
    """What was said at each pod."""
    found = [event for event in registry.list(EVENT) if event["reason"] == "SecondDevicePlugin"]
    return {event["involvedObject"]["name"]: event["message"] for event in found}


def test_only_the_config_maps_of_gpu_feature_discovery_concern_nodes() -> None:
    registry = new_registry("g5.xlarge")
    body: dict[str, Any] = {"containers": [{"name": "c", "image": GPU_FEATURES}]}
    body |= {"nodeName": "n0", "volumes": [{"name": "config", "configMap": {"name": "sharing"}}]}
    registry.create(POD, {"metadata": {"name": "gfd", "namespace": "gpu"}, "spec": body})
    found = GpuOperatorController.watches[CONFIG_MAP]

    def concerned(name: str, namespace: str = "gpu") -> list[tuple[str, ...]]:
        return list(found(registry, {"metadata": {"name": name, "namespace": namespace}}))

    assert concerned("sharing") == [("", "n0")]
    assert concerned("other") == concerned("sharing", "default") == []
    registry.delete(POD, "gpu", "gfd", grace_period=0)
    assert concerned("sharing") == []


def test_two_device_plugins_on_a_node_are_warned_of_at_both() -> None:
    registry = new_registry("g5.xlarge")
    controller = DevicePluginController()
    add_pod(registry, "eksctls", PLUGIN)
    add_pod(registry, "on-another-node", PLUGIN, "n1")
    add_pod(registry, "operators", PLUGIN, up=False)
    look(controller, registry)
    assert warnings(registry) == {}
    registry.delete(POD, "gpu", "operators", grace_period=0)
    add_pod(registry, "operators", PLUGIN)
    look(controller, registry)
    said = warnings(registry)
    assert said.keys() == {"eksctls", "operators"}
    assert "gpu/operators offers the GPUs of n0 too" in said["eksctls"]
    assert "devicePlugin.enabled=false" in said["operators"]


def daemon_set(registry: Registry, name: str, part: str, ready: int) -> None:
    labels = {"app.kubernetes.io/part-of": part, "app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": PLUGIN}]}}
    metadata = {"name": name, "namespace": "gpu", "labels": labels}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    registry.create(DAEMON_SET, {"metadata": metadata, "spec": spec})

    def report(live: Object) -> None:
        live["status"] = {"desiredNumberScheduled": 2, "numberReady": ready, "observedGeneration": 1}

    assert registry.modify(DAEMON_SET, "gpu", name, report, "status") is not None


def test_the_cluster_policy_is_ready_when_its_operands_are() -> None:
    registry = new_registry()
    controller = ClusterPolicyController()
    look(controller, registry, "gpu", "cluster-policy")  # no such kind yet
    crd = charts.path("gpu-operator") / "crds" / "clusterpolicies.yaml"
    registry.create(CRD, yaml.safe_load(crd.read_text()))
    kind = registry.kinds.of("nvidia.com/v1", "ClusterPolicy")
    assert kind is not None
    look(controller, registry, "gpu", "cluster-policy")  # no such object yet
    registry.create(kind, {"metadata": {"name": "cluster-policy"}, "spec": {}})
    daemon_set(registry, "ours", "gpu-operator", 2)
    daemon_set(registry, "late", "gpu-operator", 1)
    daemon_set(registry, "another", "something", 0)
    look(controller, registry, "gpu", "cluster-policy")
    policy = registry.get(kind, "", "cluster-policy")
    assert policy["status"] == {"namespace": "gpu", "state": "notReady"}

    def catch_up(live: Object) -> None:
        live["status"]["numberReady"] = 2

    registry.modify(DAEMON_SET, "gpu", "late", catch_up, "status")
    look(controller, registry, "gpu", "cluster-policy")
    assert registry.get(kind, "", "cluster-policy")["status"]["state"] == "ready"


def test_only_the_operators_daemon_sets_concern_the_policy() -> None:
    registry = new_registry()
    daemon_set(registry, "ours", "gpu-operator", 2)
    daemon_set(registry, "another", "something", 0)
    found = ClusterPolicyController.watches[DAEMON_SET]
    concerned = {name_of(obj): list(found(registry, obj)) for obj in registry.list(DAEMON_SET)}
    assert concerned == {"ours": [("gpu", "cluster-policy")], "another": []}


def test_each_controller_has_a_name_of_its_own() -> None:
    controllers = node_controllers()
    assert len({controller.name for controller in controllers}) == len(controllers) == 3
