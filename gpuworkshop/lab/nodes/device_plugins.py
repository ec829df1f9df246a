"""Two device plugins at once: what the 2023 walkthrough warns of, and a real cluster does not say.

eksctl's plugin and the operator's both offer the same GPUs to a kubelet, which listens to whichever came
last. The lab tells it at each of the two pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuworkshop.lab.api.kinds import POD, Kind
from gpuworkshop.lab.api.objects import Object, is_deleted, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys
from gpuworkshop.lab.controllers.pods import is_ready
from gpuworkshop.lab.kubelet import sharing

COMPONENT = "gpuworkshop-lab"


def _node_of(_: Registry, pod: Object) -> Iterable[Key]:
    if sharing.is_plugin(pod) and is_ready(pod) and pod["spec"].get("nodeName"):
        yield "", pod["spec"]["nodeName"]


class DevicePluginController(Controller):
    """Warns of a node that has more than one."""

    name = "device-plugins"
    watches: Mapping[Kind, Keys] = {POD: _node_of}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Warn at each plugin of the node, once for each other one."""
        _, node = key
        plugins = [pod for pod in index_of(registry).on_node(node) if _offers(pod)]
        for pod in plugins:
            for other in plugins:
                if other is not pod:
                    _warn(registry, pod, other, node)
        return None


def _offers(pod: Object) -> bool:
    return not is_deleted(pod) and sharing.is_plugin(pod) and is_ready(pod)


def _warn(registry: Registry, pod: Object, other: Object, node: str) -> None:
    registry.event(
        pod,
        "Warning",
        "SecondDevicePlugin",
        f"{namespace_of(other)}/{name_of(other)} offers the GPUs of {node} too: delete one of the two "
        "DaemonSets, or set devicePlugin.enabled=false in the GPU Operator",
        COMPONENT,
        node,
    )
