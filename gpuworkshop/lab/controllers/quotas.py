"""ResourceQuotas: what they say is used, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.kinds import EVENT, POD, RESOURCE_QUOTA, Kind
from gpuworkshop.lab.api.listening import ObjectChange
from gpuworkshop.lab.api.objects import Object, is_deleted, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.conditions import write_status
from gpuworkshop.lab.controllers.limits import admit_limits
from gpuworkshop.lab.controllers.loop import Controller, Key
from gpuworkshop.lab.controllers.quota_usage import counts, hard, quotas_in, usage_of, used, written


class QuotaController(Controller):
    """Writes what is used."""

    name = "resourcequota-controller"
    watches_all = True

    def keys(self, registry: Registry, change: ObjectChange) -> Iterable[Key]:
        """The quotas of the namespace of whatever has changed."""
        if change.kind.namespaced and change.kind is not EVENT:
            for quota in quotas_in(registry, namespace_of(change.object)):
                yield namespace_of(quota), name_of(quota)

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Count anew."""
        quota = registry.find(RESOURCE_QUOTA, *key)
        if quota is None or is_deleted(quota):
            return None
        limits = quota["spec"].get("hard") or {}
        found = {name: written(name, value) for name, value in used(registry, quota).items()}
        write_status(registry, RESOURCE_QUOTA, quota, {"hard": dict(limits), "used": found})
        return None


def check_quota(registry: Registry, kind: Kind, obj: Object) -> None:
    """Refuse a new object that a quota of its namespace has no room for."""
    if not kind.namespaced or kind is EVENT:
        return
    for quota in quotas_in(registry, namespace_of(obj)):
        if counts(quota, kind, obj):
            _check(registry, quota, kind, obj)


def _check(registry: Registry, quota: Object, kind: Kind, obj: Object) -> None:
    limits = hard(quota)
    if kind is POD and (missing := _unspecified(limits, obj)):
        why = f"failed quota: {name_of(quota)}: must specify {'; '.join(missing)}"
        raise problems.forbidden(kind, name_of(obj), why)
    asked = {name: value for name, value in usage_of(obj, kind).items() if value and name in limits}
    if not asked:
        return
    before = used(registry, quota)
    over = sorted(name for name, value in asked.items() if before[name] + value > limits[name])
    if over:
        why = (
            f"exceeded quota: {name_of(quota)}, requested: {_listed(over, asked)}, "
            f"used: {_listed(over, before)}, limited: {_listed(over, limits)}"
        )
        raise problems.forbidden(kind, name_of(obj), why)


def _listed(names: Iterable[str], amounts: Mapping[str, Decimal]) -> str:
    return ",".join(f"{name}={written(name, amounts[name])}" for name in names)


def _unspecified(limits: Iterable[str], pod: Object) -> list[str]:
    """What of CPU and memory the quota limits, and a container does not say."""
    missing = []
    for name in sorted(limits):
        side, _, resource = name.rpartition(".")
        if resource not in ("cpu", "memory") or side not in ("", "requests", "limits"):
            continue
        silent = [
            container.get("name", "")
            for container in pod["spec"].get("containers") or ()
            if resource not in ((container.get("resources") or {}).get(side or "requests") or {})
        ]
        if silent:
            missing.append(f"{name} for: {','.join(sorted(silent))}")
    return missing


# What the registry asks before it stores a new object: limit ranges first, which fill in what quotas count.
ADMISSION = (admit_limits, check_quota)
