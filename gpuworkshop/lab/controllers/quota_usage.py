"""What each object counts for in a ResourceQuota, and which quotas count it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from gpuworkshop.lab.api.kinds import POD, RESOURCE_QUOTA, SERVICE, Kind
from gpuworkshop.lab.api.object_selectors import meets
from gpuworkshop.lab.api.objects import Object, namespace_of
from gpuworkshop.lab.api.quantities import format_quantity
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.pods import is_finished
from gpuworkshop.lab.controllers.requests import Amounts, amount, pod_total

ONE = Decimal(1)
PLAIN = ("cpu", "memory", "ephemeral-storage")  # these may be written without `requests.`


def usage_of(obj: Object, kind: Kind) -> Amounts:
    """What an object usage for, under every name that a quota may use."""
    if kind is POD:
        return _of_pod(obj)
    usage = {kind.plural: ONE} if not kind.group else {}
    usage[f"count/{kind.resource}"] = ONE
    if kind is SERVICE:
        spec = obj["spec"]
        ports = len(spec.get("ports") or ())
        exposed = spec.get("type") in ("NodePort", "LoadBalancer")
        usage["services.nodeports"] = Decimal(ports if exposed else 0)
        usage["services.loadbalancers"] = ONE if spec.get("type") == "LoadBalancer" else Decimal()
    return usage


def _of_pod(pod: Object) -> Amounts:
    usage = {"count/pods": ONE}
    if is_finished(pod):
        return usage
    usage["pods"] = ONE
    for name, value in pod_total(pod, "requests").items():
        usage[f"requests.{name}"] = value
        if name in PLAIN:
            usage[name] = value
    for name, value in pod_total(pod, "limits").items():
        usage[f"limits.{name}"] = value
    return usage


def used(registry: Registry, quota: Object) -> Amounts:
    """What the namespace uses of everything that the quota limits."""
    index, namespace = index_of(registry), namespace_of(quota)
    total = {name: Decimal() for name in hard(quota)}
    scoped = bool(quota["spec"].get("scopes") or quota["spec"].get("scopeSelector"))
    for kind in _kinds(registry, total):
        for obj in index.within(kind, namespace):
            if scoped and not counts(quota, kind, obj):
                continue
            usage = index.derived(obj, _of_pod) if kind is POD else usage_of(obj, kind)
            for name in total:
                if name in usage:
                    total[name] += usage[name]
    return total


def _kinds(registry: Registry, names: Iterable[str]) -> list[Kind]:
    """The kinds that a quota of these names counts."""
    found = {}
    for name in names:
        plain = name.removeprefix("count/")
        for kind in registry.kinds:
            if plain == kind.resource or (kind is SERVICE and plain.startswith("services.")):
                found[kind.resource] = kind
        if plain.startswith(("requests.", "limits.")) or plain in PLAIN:
            found[POD.resource] = POD
    return list(found.values())


def hard(quota: Object) -> Amounts:
    """The quota's limits."""
    return {name: amount(value) for name, value in (quota["spec"].get("hard") or {}).items()}


def counts(quota: Object, kind: Kind, obj: Object) -> bool:
    """Whether the quota's scopes cover the object; scopes cover pods only."""
    scopes = [{"scopeName": name, "operator": "Exists"} for name in quota["spec"].get("scopes") or ()]
    scopes += (quota["spec"].get("scopeSelector") or {}).get("matchExpressions") or []
    return not scopes or (kind is POD and all(_covers(scope, obj) for scope in scopes))


def _covers(scope: Mapping[str, Any], pod: Object) -> bool:
    spec = pod["spec"]
    match scope["scopeName"]:
        case "BestEffort":
            return _is_best_effort(spec)
        case "NotBestEffort":
            return not _is_best_effort(spec)
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "PriorityClass":
            name = spec.get("priorityClassName")
            return meets({**scope, "key": "class"}, {"class": name} if name else {})
    return False


def _is_best_effort(spec: Mapping[str, Any]) -> bool:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    listed = (container.get("resources") or {} for container in containers)
    sides = (side for found in listed for side in (found.get("requests"), found.get("limits")) if side)
    return not any(name in ("cpu", "memory") for side in sides for name in side)


def quotas_in(registry: Registry, namespace: str) -> list[Object]:
    """The quotas of a namespace."""
    return index_of(registry).within(RESOURCE_QUOTA, namespace)


def written(name: str, value: Decimal) -> str:
    """An amount as a quota shows it: memory in Mi and Gi, all else in decimal units."""
    return format_quantity(value, "1Ki" if "memory" in name or "storage" in name else "")
