"""What NVIDIA's GPU Operator does to nodes: labels that say there are GPUs, and what is to be put there.

In the lab its work is done here, while a pod of it runs; its DaemonSets select nodes by these labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuworkshop.errors import ClusterConfigError
from gpuworkshop.lab.api.kinds import NODE, POD, Kind
from gpuworkshop.lab.api.objects import Object, is_deleted, labels_of, meta, name_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys
from gpuworkshop.lab.nodes import instances

OPERATOR_IMAGE = "gpu-operator"
DEPLOYED = (
    "container-toolkit",
    "dcgm-exporter",
    "device-plugin",
    "gpu-feature-discovery",
    "operator-validator",
)


def _node_key(_: Registry, node: Object) -> Iterable[Key]:
    yield "", name_of(node)


def _all_nodes(registry: Registry, pod: Object) -> Iterable[Key]:
    """A pod of the operator concerns each node."""
    if is_operator(pod):
        for node in registry.list(NODE):
            yield "", name_of(node)


def is_operator(pod: Object) -> bool:
    """Whether the pod runs the GPU Operator itself."""
    return any(
        OPERATOR_IMAGE in container.get("image", "").rsplit("/", 1)[-1]
        and "validator" not in container.get("name", "")
        for container in pod["spec"].get("containers") or []
    )


class GpuOperatorController(Controller):
    """Labels the nodes with GPUs."""

    name = "gpu-operator"
    watches: Mapping[Kind, Keys] = {NODE: _node_key, POD: _all_nodes}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Write what is missing; labels stay when the operator goes, as they do for real."""
        node = registry.find(NODE, *key)
        if node is None or is_deleted(node) or not any(map(_runs, registry.list(POD))):
            return None
        wanted = _labels(node)
        if wanted.items() - labels_of(node).items():
            registry.modify(NODE, "", name_of(node), lambda new: _add(new, wanted))
        return None


def _runs(pod: Object) -> bool:
    return is_operator(pod) and (pod.get("status") or {}).get("phase") == "Running" and not is_deleted(pod)


def _add(node: Object, labels: Mapping[str, str]) -> None:
    meta(node).setdefault("labels", {}).update(labels)


def _labels(node: Object) -> dict[str, str]:
    """The labels of NFD, GPU feature discovery and the operator; none for a node without GPUs."""
    try:
        machine = instances.find(labels_of(node).get("node.kubernetes.io/instance-type", ""))
    except ClusterConfigError:
        return {}
    if not machine.gpus:
        return {}
    return {
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(machine.gpus),
        "nvidia.com/gpu.product": f"NVIDIA-{machine.gpu_model}",
        **{f"nvidia.com/gpu.deploy.{name}": "true" for name in DEPLOYED},
    }
