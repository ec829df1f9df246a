"""Garbage collection: what an owner leaves behind is deleted, before it or after it, or set free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpuworkshop.lab.api.deletion import FOREGROUND, ORPHAN
from gpuworkshop.lab.api.kinds import EVENT, Kind
from gpuworkshop.lab.api.listening import ObjectChange
from gpuworkshop.lab.api.objects import Object, is_deleted, meta, name_of, namespace_of, uid_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.claims import disown
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.loop import Controller, Key

BURST = 25


class GarbageCollector(Controller):
    """Follows owner references; a key is the UID of an object, there or gone."""

    name = "garbage-collector-controller"
    watches_all = True

    def keys(self, _: Registry, change: ObjectChange) -> Iterable[Key]:
        """The object, and its owners, which may wait for it to go."""
        if change.kind is EVENT:
            return
        references = meta(change.object).get("ownerReferences") or ()
        if change.type == "DELETED" or is_deleted(change.object) or references:
            yield (uid_of(change.object),)
        if change.type == "DELETED":
            yield from ((reference["uid"],) for reference in references)

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Do for an object what its deletion, or its owners' deletion, asks."""
        (uid,) = key
        index = index_of(registry)
        entry = index.with_uid(uid)
        if entry is None:
            return self._delete_left_behind(registry, uid)
        kind = _kind(registry, entry[0], entry[1])
        if kind is None:
            return None
        finalizers = meta(entry[1]).get("finalizers") or ()
        if is_deleted(entry[1]) and ORPHAN in finalizers:
            return self._set_free(registry, kind, entry[1])
        if is_deleted(entry[1]) and FOREGROUND in finalizers:
            return self._delete_before(registry, kind, entry[1])
        self._follow_owners(registry, kind, entry[1])
        return None

    def _delete_left_behind(self, registry: Registry, uid: str) -> float | None:
        """The owner is gone: have each dependent look at its owners."""
        dependents = index_of(registry).dependents(uid)
        for resource, obj in dependents[:BURST]:
            if kind := _kind(registry, resource, obj):
                self._follow_owners(registry, kind, obj)
        return 0.0 if len(dependents) > BURST else None

    def _follow_owners(self, registry: Registry, kind: Kind, obj: Object) -> None:
        """Delete an object whose last owner is gone, or goes only after it."""
        references = meta(obj).get("ownerReferences") or []
        if not references or is_deleted(obj):
            return
        _warn_of_elsewhere(registry, obj, references)
        if not kind.namespaced and any(_is_elsewhere(registry, obj, ref) for ref in references):
            return  # nobody can say whether such an owner is gone
        owners = [_owner(registry, obj, ref) for ref in references]
        gone = [ref for ref, owner in zip(references, owners, strict=True) if owner is None]
        waiting = [ref for ref, owner in zip(references, owners, strict=True) if _waits(owner)]
        if len(gone) + len(waiting) == len(references):
            # What is waited for goes in the same way, so that its own dependents go before it.
            before = bool(waiting) and bool(index_of(registry).dependents(uid_of(obj)))
            propagation = "Foreground" if before else "Background"
            registry.delete(kind, namespace_of(obj), name_of(obj), propagation=propagation, uid=uid_of(obj))
            return
        for reference in [*gone, *waiting]:
            disown(registry, kind, obj, reference["uid"])

    def _delete_before(self, registry: Registry, kind: Kind, owner: Object) -> float | None:
        dependents = index_of(registry).dependents(uid_of(owner))
        fresh = [entry for entry in dependents if not is_deleted(entry[1])]
        for resource, obj in fresh[:BURST]:
            if found := _kind(registry, resource, obj):
                self._follow_owners(registry, found, obj)
        if len(fresh) > BURST:
            return 0.0
        blocking = _blocking(registry, owner)
        if not any(not _waits_for(registry, obj, uid_of(owner)) for obj in blocking):
            _finish(registry, kind, owner, FOREGROUND)
        return None

    def _set_free(self, registry: Registry, kind: Kind, owner: Object) -> float | None:
        dependents = index_of(registry).dependents(uid_of(owner))
        for resource, obj in dependents[:BURST]:
            if found := _kind(registry, resource, obj):
                disown(registry, found, obj, uid_of(owner))
        if len(dependents) > BURST:
            return 0.0
        _finish(registry, kind, owner, ORPHAN)
        return None


def _kind(registry: Registry, resource: str, obj: Object) -> Kind | None:
    found = registry.kinds.of(obj["apiVersion"], obj["kind"])
    return found if found is not None and found.resource == resource else None


def _owner(registry: Registry, obj: Object, reference: Mapping[str, Any]) -> Object | None:
    """The owner that a reference names; None if it is gone, another object, or out of reach of `obj`."""
    entry = index_of(registry).with_uid(reference["uid"])
    if entry is None or _is_elsewhere(registry, obj, reference):
        return None
    found = entry[1]
    return found if (found["kind"], name_of(found)) == (reference["kind"], reference["name"]) else None


def _is_elsewhere(registry: Registry, obj: Object, reference: Mapping[str, Any]) -> bool:
    """Whether the owner is in another namespace than its dependent, where no owner can be."""
    entry = index_of(registry).with_uid(reference["uid"])
    return entry is not None and namespace_of(entry[1]) not in ("", namespace_of(obj))


def _warn_of_elsewhere(registry: Registry, obj: Object, references: Iterable[Mapping[str, Any]]) -> None:
    namespace = namespace_of(obj)
    for ref in references:
        if _is_elsewhere(registry, obj, ref):
            named = f"[{ref['apiVersion']}/{ref['kind']}, namespace: {namespace}, name: {ref['name']}, "
            message = f'ownerRef {named}uid: {ref["uid"]}] does not exist in namespace "{namespace}"'
            component = GarbageCollector.name
            registry.event(obj, "Warning", "OwnerRefInvalidNamespace", message, component)


def _waits(owner: Object | None) -> bool:
    """Whether an owner goes only after its dependents."""
    return owner is not None and is_deleted(owner) and FOREGROUND in (meta(owner).get("finalizers") or ())


def _blocking(registry: Registry, owner: Object) -> list[Object]:
    """The dependents without whose end an owner that waits does not go."""
    return [obj for _, obj in index_of(registry).dependents(uid_of(owner)) if _blocks(obj, owner)]


def _blocks(obj: Object, owner: Object) -> bool:
    if namespace_of(owner) not in ("", namespace_of(obj)):
        return False
    references = meta(obj).get("ownerReferences") or ()
    return any(ref["uid"] == uid_of(owner) and ref.get("blockOwnerDeletion") for ref in references)


def _waits_for(registry: Registry, obj: Object, uid: str) -> bool:
    """Whether an object itself waits, however indirectly, for the one with that UID: none would ever go."""
    seen: set[str] = set()
    left = [obj]
    while left:
        found = left.pop()
        if uid_of(found) == uid:
            return True
        if uid_of(found) not in seen and _waits(found):
            left += _blocking(registry, found)
        seen.add(uid_of(found))
    return False


def _finish(registry: Registry, kind: Kind, obj: Object, finalizer: str) -> None:
    def change(live: Object) -> None:
        left = [found for found in meta(live).get("finalizers") or () if found != finalizer]
        meta(live).pop("finalizers", None)
        if left:
            meta(live)["finalizers"] = left

    registry.modify(kind, namespace_of(obj), name_of(obj), change)
