"""What a pod asks for, and gets, in numbers: the downward API's resource fields, GPUs, the QoS class."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.quantities import parse

GPU = "nvidia.com/gpu"


def containers_of(pod: Object) -> list[dict[str, Any]]:
    """The pod's containers, init containers first."""
    spec = pod["spec"]
    return [*(spec.get("initContainers") or []), *spec["containers"]]


def container_of(pod: Object, name: str) -> dict[str, Any] | None:
    """The container of that name."""
    return next((found for found in containers_of(pod) if found["name"] == name), None)


def resource_of(pod: Object, reference: Mapping[str, Any], container: str) -> str:
    """A `resourceFieldRef`, such as `limits.memory`, in units of its divisor, rounded up; 0 if not set."""
    found = container_of(pod, container) or {}
    which, _, name = reference["resource"].partition(".")
    amount = ((found.get("resources") or {}).get(which) or {}).get(name, "0")
    divisor = reference.get("divisor") or "1"
    return str(math.ceil(parse(str(amount)) / (parse(str(divisor)) or 1)))


def gpus_of(container: Mapping[str, Any]) -> int:
    """How many GPUs, or replicas of GPUs, the container is limited to."""
    limits = (container.get("resources") or {}).get("limits") or {}
    return int(parse(str(limits.get(GPU, "0"))))


def qos_class(pod: Object) -> str:
    """Guaranteed, Burstable or BestEffort, by the requests and limits of CPU and memory."""
    pairs = list(_pairs(pod))
    if all(request is None and limit is None for request, limit in pairs):
        return "BestEffort"
    if all(limit is not None and request in (None, limit) for request, limit in pairs):
        return "Guaranteed"
    return "Burstable"


def _pairs(pod: Object) -> Iterator[tuple[object, object]]:
    for container in containers_of(pod):
        resources = container.get("resources") or {}
        for name in ("cpu", "memory"):
            request, limit = (
                None
                if (text := (resources.get(which) or {}).get(name)) in (None, "0", 0)
                else parse(str(text))
                for which in ("requests", "limits")
            )
            yield request, limit
