"""LimitRanges: the requests and limits that a namespace fills in, and the bounds that it sets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.kinds import LIMIT_RANGE, POD, Kind
from gpuworkshop.lab.api.objects import Object, meta, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.requests import Amounts, amount, amounts, pod_total

NOTE = "kubernetes.io/limit-ranger"


def admit_limits(registry: Registry, kind: Kind, pod: Object) -> None:
    """Fill in the defaults of a new pod's containers, then refuse it if it is out of bounds."""
    if kind is not POD:
        return
    items = [
        item
        for limit_range in sorted(index_of(registry).within(LIMIT_RANGE, namespace_of(pod)), key=name_of)
        for item in limit_range["spec"].get("limits") or ()
    ]
    set_by = [note for item in items if item.get("type") == "Container" for note in _fill(item, pod)]
    if set_by:
        note = f"LimitRanger plugin set: {'; '.join(set_by)}"
        meta(pod).setdefault("annotations", {})[NOTE] = note
    faults = [fault for item in items for fault in _faults(item, pod)]
    if faults:
        words = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
        raise problems.forbidden(POD, name_of(pod), words)


def _containers(pod: Object) -> Iterator[tuple[str, dict[str, Any]]]:
    for container in pod["spec"].get("containers") or ():
        yield "container", container
    for container in pod["spec"].get("initContainers") or ():
        yield "init container", container


def _fill(item: Mapping[str, Any], pod: Object) -> Iterator[str]:
    """Set what containers leave open; says what was set."""
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    for word, container in _containers(pod):
        done: defaultdict[str, list[str]] = defaultdict(list)
        for side, values in (("requests", requests), ("limits", default)):
            listed = container.setdefault("resources", {}).setdefault(side, {})
            for resource in values.keys() - listed.keys():
                listed[resource] = values[resource]
                done[side].append(resource)
            if not listed:
                del container["resources"][side]
        for side, names in done.items():
            yield f"{', '.join(sorted(names))} {side[:-1]} for {word} {container.get('name', '')}"


def _faults(item: Mapping[str, Any], pod: Object) -> Iterator[str]:
    kind = item.get("type")
    if kind == "Container":
        for _, container in _containers(pod):
            listed = container.get("resources") or {}
            yield from _bounds(item, kind, amounts(listed.get("requests")), amounts(listed.get("limits")))
    elif kind == "Pod":
        yield from _bounds(item, kind, pod_total(pod, "requests"), pod_total(pod, "limits"))


def _bounds(item: Mapping[str, Any], kind: str, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for resource, bound in sorted((item.get("min") or {}).items()):
        words = f"minimum {resource} usage per {kind} is {bound}"
        if resource not in requests:
            yield f"{words}.  No request is specified"
        elif requests[resource] < amount(bound):
            yield f"{words}, but request is {_shown(requests[resource])}"
    for resource, bound in sorted((item.get("max") or {}).items()):
        words = f"maximum {resource} usage per {kind} is {bound}"
        if resource not in limits:
            yield f"{words}.  No limit is specified"
        elif limits[resource] > amount(bound):
            yield f"{words}, but limit is {_shown(limits[resource])}"
    for resource, bound in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        words = f"{resource} max limit to request ratio per {kind} is {bound}"
        request, limit = requests.get(resource), limits.get(resource)
        if not request or not limit:
            yield f"{words}, but no request is specified or request is 0"
        elif limit / request > amount(bound):
            yield f"{words}, but provided ratio is {limit / request:.6f}"


def _shown(value: Decimal) -> str:
    """A fraction of a CPU in thousandths, all else in full."""
    return f"{value * 1000:.0f}m" if value % 1 else f"{value:.0f}"
