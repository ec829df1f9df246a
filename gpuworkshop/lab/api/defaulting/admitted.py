"""What admission adds to a new pod, and never to a template: how long it outlives its node, and its class."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.quantities import parse
from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, struct

NODE_TROUBLES = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
TOLERATED_SECONDS = 300
COUNTED = ("cpu", "memory")


def admit_pod_defaults(pod: Object) -> None:
    """A new pod's tolerations and quality of service. Last in admission, since it reads resources."""
    spec = struct(pod, "spec")
    _tolerate_troubles(spec)
    struct(pod, "status")["qosClass"] = quality_of_service(spec)


def _tolerate_troubles(spec: Mapping) -> None:
    own = mappings(spec, "tolerations")
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATED_SECONDS}
        for key in NODE_TROUBLES
        if not any(_tolerates(toleration, key) for toleration in own)
    ]
    if added:
        spec["tolerations"] = [*own, *added]


def _tolerates(toleration: Mapping, key: str) -> bool:
    return toleration.get("key") in (None, "", key) and toleration.get("effect") in (None, "", "NoExecute")


def quality_of_service(spec: Mapping) -> str:
    """`Guaranteed`, `Burstable` or `BestEffort`, by the requests and limits of CPU and memory."""
    containers = [entry for key in ("initContainers", "containers") for entry in mappings(spec, key)]
    resources = [mapping(container, "resources") for container in containers]
    asked = [(_asked(found, "requests"), _asked(found, "limits")) for found in resources]
    if not any(requests or limits for requests, limits in asked):
        return "BestEffort"
    if all(requests == limits and len(limits) == len(COUNTED) for requests, limits in asked):
        return "Guaranteed"
    return "Burstable"


def _asked(resources: Mapping, side: str) -> dict[str, Decimal]:
    listed = mapping(resources, side)
    amounts = {name: _amount(listed.get(name)) for name in COUNTED}
    return {name: amount for name, amount in amounts.items() if amount}


def _amount(value: Any) -> Decimal | None:
    try:
        return None if value is None else parse(value)
    except ValueError:
        return None
