"""What a pod asks for: the sum of its containers, or its largest init container where that is more."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.quantities import parse

Amounts = dict[str, Decimal]


def amount(text: str | int | float) -> Decimal:
    """A quantity's exact value; nonsense, which validation refuses, is 0."""
    try:
        return parse(text)
    except ValueError:
        return Decimal()


def amounts(listed: Mapping[str, Any] | None) -> Amounts:
    """A list of resources, such as `limits`, in numbers."""
    return {name: amount(value) for name, value in (listed or {}).items()}


def pod_requests(pod: Object) -> Amounts:
    """What the scheduler counts: the requests, and the pod itself as one of `pods`."""
    return {**pod_total(pod, "requests"), "pods": Decimal(1)}


def pod_total(pod: Object, side: str) -> Amounts:
    """A pod's `requests` or `limits` as a whole; init containers that stay on count as containers."""
    spec = pod["spec"]
    total: Amounts = {}
    largest: Amounts = {}
    for container in spec.get("initContainers") or ():
        asked = amounts((container.get("resources") or {}).get(side))
        if container.get("restartPolicy") == "Always":
            add(total, asked)
            asked = dict(total)
        else:
            asked = {name: asked[name] + total.get(name, 0) for name in asked}
        largest |= {name: max(asked[name], largest.get(name, Decimal())) for name in asked}
    for container in spec.get("containers") or ():
        add(total, amounts((container.get("resources") or {}).get(side)))
    total |= {name: max(largest[name], total.get(name, Decimal())) for name in largest}
    add(total, amounts(spec.get("overhead")))
    return total


def add(total: Amounts, more: Mapping[str, Decimal]) -> None:
    """Add to a sum in place."""
    for name, value in more.items():
        total[name] = total.get(name, Decimal()) + value
