"""Namespaces that are deleted: what is in them goes first, then they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gpuworkshop.lab.api.kinds import EVENT, NAMESPACE, Kind
from gpuworkshop.lab.api.listening import ObjectChange
from gpuworkshop.lab.api.objects import Object, is_deleted, meta, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.conditions import (
    Conditions,
    conditions_of,
    with_condition,
    write_status,
)
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.loop import Controller, Key

FINALIZER = "kubernetes"
BURST = 50
_FAILURES = (
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


class NamespaceController(Controller):
    """Empties namespaces that are being deleted."""

    name = "namespace-controller"
    watches_all = True

    def keys(self, registry: Registry, change: ObjectChange) -> Iterable[Key]:
        """A namespace, also when something in it has gone or changed while it goes."""
        if change.kind is NAMESPACE:
            yield (name_of(change.object),)
        elif change.kind.namespaced and change.kind is not EVENT:
            namespace = registry.find(NAMESPACE, "", namespace_of(change.object))
            if namespace is not None and is_deleted(namespace):
                yield (name_of(namespace),)

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Delete some of what is left; without anything left, let the namespace go."""
        namespace = registry.find(NAMESPACE, "", key[0])
        if namespace is None or not is_deleted(namespace):
            return None
        fresh = [found for found in _contents(registry, key[0]) if not is_deleted(found[1])]
        for kind, obj in fresh[:BURST]:
            registry.delete(kind, namespace_of(obj), name_of(obj))
        if len(fresh) > BURST:
            return 0.0
        left = _contents(registry, key[0])
        if not left:
            registry.modify(NAMESPACE, "", key[0], _without_finalizer, "finalize")
            return None
        status = {**(namespace.get("status") or {}), "phase": "Terminating"}
        status["conditions"] = _conditions(namespace, left, registry.now())
        write_status(registry, NAMESPACE, namespace, status)
        return None


def _contents(registry: Registry, namespace: str) -> list[tuple[Kind, Object]]:
    index = index_of(registry)
    # A resource is asked once, though a CRD may serve it at several versions.
    kinds = {kind.resource: kind for kind in registry.kinds if kind.namespaced and kind.stored}
    return [(kind, obj) for kind in kinds.values() for obj in index.within(kind, namespace)]


def _without_finalizer(live: Object) -> None:
    spec = live.setdefault("spec", {})
    spec["finalizers"] = [found for found in spec.get("finalizers") or () if found != FINALIZER]
    if not spec["finalizers"]:
        del spec["finalizers"]


def _conditions(namespace: Object, left: Iterable[tuple[Kind, Object]], now: float) -> Conditions:
    conditions = conditions_of(namespace)
    for kind, reason, message in _FAILURES:
        conditions = with_condition(conditions, kind, "False", reason, message, now)
    resources: Counter[str] = Counter()
    finalizers: Counter[str] = Counter()
    for found, obj in left:
        resources[f"{found.plural}.{found.group}"] += 1
        finalizers.update(meta(obj).get("finalizers") or ())
    words = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(resources.items()))
    message = f"Some resources are remaining: {words}"
    conditions = with_condition(
        conditions, "NamespaceContentRemaining", "True", "SomeResourcesRemain", message, now
    )
    words = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    if words:
        reason, status = "SomeFinalizersRemain", "True"
        message = f"Some content in the namespace has finalizers remaining: {words}"
    else:
        reason, status, message = (
            "ContentHasNoFinalizers",
            "False",
            "All content-preserving finalizers finished",
        )
    return with_condition(conditions, "NamespaceFinalizersRemaining", status, reason, message, now)
