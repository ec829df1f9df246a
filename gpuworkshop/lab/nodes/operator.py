"""What NVIDIA's GPU Operator, and what comes with it, does to nodes: labels.

Node Feature Discovery says that there is an NVIDIA card, the operator then what is to run on the node, and
GPU Feature Discovery which GPUs it has. In the lab their work is done here, while pods of them run; as for
real, labels stay when the pods go. The operator's DaemonSets select nodes by these labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuworkshop.errors import ClusterConfigError
from gpuworkshop.lab.api.kinds import CONFIG_MAP, NODE, POD, Kind
from gpuworkshop.lab.api.objects import Object, is_deleted, labels_of, meta, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.index import image_name, index_of
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys
from gpuworkshop.lab.controllers.pods import phase_of
from gpuworkshop.lab.kubelet import sharing
from gpuworkshop.lab.nodes import instances
from gpuworkshop.lab.nodes.instances import InstanceType

OPERATOR, NODE_FEATURES, GPU_FEATURES = "gpu-operator", "node-feature-discovery", "gpu-feature-discovery"
CARD = "feature.node.kubernetes.io/pci-10de.present"
DEPLOYED = (
    "container-toolkit",
    "dcgm",
    "dcgm-exporter",
    "device-plugin",
    "gpu-feature-discovery",
    "node-status-exporter",
    "operator-validator",
)


def _node_key(_: Registry, node: Object) -> Iterable[Key]:
    yield "", name_of(node)


def _all_nodes(registry: Registry, _: Object) -> Iterable[Key]:
    for node in registry.list(NODE):
        yield "", name_of(node)


def _nodes_configured(registry: Registry, config_map: Object) -> Iterable[Key]:
    """The nodes whose GPU feature discovery reads the ConfigMap: most ConfigMaps concern none."""
    for pod in index_of(registry).with_image(GPU_FEATURES):
        volumes = pod["spec"].get("volumes") or ()
        names = [(volume.get("configMap") or {}).get("name") for volume in volumes]
        if namespace_of(pod) == namespace_of(config_map) and name_of(config_map) in names:
            yield "", pod["spec"].get("nodeName", "")


def _nodes_of(registry: Registry, pod: Object) -> Iterable[Key]:
    """A pod of the operator concerns each node, one of the discoveries its own."""
    if _has_image(pod, OPERATOR):
        yield from _all_nodes(registry, pod)
    elif (_has_image(pod, NODE_FEATURES) or _has_image(pod, GPU_FEATURES)) and pod["spec"].get("nodeName"):
        yield "", pod["spec"]["nodeName"]


class GpuOperatorController(Controller):
    """Labels the nodes."""

    name = "gpu-operator"
    watches: Mapping[Kind, Keys] = {NODE: _node_key, POD: _nodes_of, CONFIG_MAP: _nodes_configured}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Write what labels the node lacks."""
        node = registry.find(NODE, *key)
        if node is None or is_deleted(node) or (machine := _machine(node)) is None:
            return None
        wanted = _labels(registry, node, machine)
        if wanted.items() - labels_of(node).items():
            registry.modify(NODE, "", name_of(node), lambda new: _add(new, wanted))
        return None


def _add(node: Object, labels: Mapping[str, str]) -> None:
    meta(node).setdefault("labels", {}).update(labels)


def _machine(node: Object) -> InstanceType | None:
    """What the node is; None for one whose type the lab does not know, which has no kubelet either."""
    try:
        return instances.find(labels_of(node).get("node.kubernetes.io/instance-type", ""))
    except ClusterConfigError:
        return None


def _labels(registry: Registry, node: Object, machine: InstanceType) -> dict[str, str]:
    """What those say that run now; nothing of GPUs for a node without."""
    index = index_of(registry)
    here = list(filter(_runs, index.on_node(name_of(node))))
    labels: dict[str, str] = {}
    if any(_has_image(pod, NODE_FEATURES) for pod in here):
        labels |= _node_features(machine)
    if not machine.gpus:
        return labels
    if CARD in {**labels_of(node), **labels} and any(
        _runs(pod) and _has_image(pod, OPERATOR) for pod in index.with_image(OPERATOR)
    ):
        labels |= _operands(machine)
    if (found := next((pod for pod in here if _has_image(pod, GPU_FEATURES)), None)) is not None:
        labels |= _gpu_features(machine, sharing.replicas(registry, found, node))
    return labels


def _runs(pod: Object) -> bool:
    return phase_of(pod) == "Running" and not is_deleted(pod)


def _has_image(pod: Object, name: str) -> bool:
    """Whether it runs an image of that name; the operator's own image also holds its validator."""
    return any(
        image_name(container) == name and "validator" not in container.get("name", "")
        for container in pod["spec"].get("containers") or []
    )


def _node_features(machine: InstanceType) -> dict[str, str]:
    card = {CARD: "true"} if machine.gpus else {}
    return {
        **card,
        "feature.node.kubernetes.io/system-os_release.ID": "amzn",
        "feature.node.kubernetes.io/system-os_release.VERSION_ID": "2023",
    }


def _operands(machine: InstanceType) -> dict[str, str]:
    """Machine images of EKS for NVIDIA come with the driver, so that the operator installs none."""
    mig = {"mig-manager": "true"} if instances.gpu_models()[machine.gpu_model].mig else {}
    operands = {**dict.fromkeys(DEPLOYED, "true"), **mig, "driver": "pre-installed"}
    deployed = {f"nvidia.com/gpu.deploy.{name}": value for name, value in operands.items()}
    return {"nvidia.com/gpu.present": "true", **deployed}


def _gpu_features(machine: InstanceType, replicas: int) -> dict[str, str]:
    model = instances.gpu_models()[machine.gpu_model]
    major, _, minor = model.compute.partition(".")
    return {
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.count": str(machine.gpus),
        "nvidia.com/gpu.family": model.family,
        "nvidia.com/gpu.machine": machine.name,
        "nvidia.com/gpu.memory": str(model.memory),
        "nvidia.com/gpu.product": model.product + ("-SHARED" if replicas > 1 else ""),
        "nvidia.com/gpu.replicas": str(replicas),
        "nvidia.com/gpu.sharing-strategy": "time-slicing" if replicas > 1 else "none",
        "nvidia.com/mig.capable": str(model.mig).lower(),
    }
