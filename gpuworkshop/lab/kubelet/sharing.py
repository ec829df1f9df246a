"""Time-slicing: what the device plugin's configuration says about sharing a GPU.

The plugin reads a file that is mounted from a ConfigMap; in one with several, the node's label
`nvidia.com/device-plugin.config` picks one, else it is the only one, `default` or `any`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from gpuworkshop.lab.api.kinds import CONFIG_MAP
from gpuworkshop.lab.api.objects import Object, labels_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.kubelet.resources import GPU

PLUGIN = "k8s-device-plugin"
CONFIG_LABEL = "nvidia.com/device-plugin.config"
MOST_REPLICAS = 1024


def is_plugin(pod: Object) -> bool:
    """Whether the pod runs NVIDIA's device plugin."""
    return any(PLUGIN in container["image"] for container in pod["spec"]["containers"])


def replicas(registry: Registry, plugin: Object, node: Object) -> int:
    """How many times each GPU of the node is offered: 1 without a configuration that can be understood."""
    for data in _config_maps(registry, plugin):
        chosen = _chosen(data, labels_of(node).get(CONFIG_LABEL, ""))
        if chosen is not None and (found := _replicas(chosen)):
            return found
    return 1


def _config_maps(registry: Registry, plugin: Object) -> Iterator[Mapping[str, str]]:
    for volume in plugin["spec"].get("volumes") or []:
        name = (volume.get("configMap") or {}).get("name")
        found = registry.find(CONFIG_MAP, namespace_of(plugin), name) if name else None
        if found is not None:
            yield found.get("data") or {}


def _chosen(data: Mapping[str, str], label: str) -> str | None:
    if label:
        return data.get(label)
    if len(data) == 1:
        return next(iter(data.values()))
    return data.get("default") or data.get("any")


def _replicas(text: str) -> int:
    try:
        found: Any = yaml.safe_load(text)
        resources = found["sharing"]["timeSlicing"]["resources"]
        wanted = next(int(each["replicas"]) for each in resources if each["name"] == GPU)
    except (yaml.YAMLError, KeyError, TypeError, ValueError, StopIteration):
        return 0
    return wanted if 1 <= wanted <= MOST_REPLICAS else 0
