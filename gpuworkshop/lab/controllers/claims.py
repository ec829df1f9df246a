"""Which objects a controller owns: those of its selector. It adopts the ownerless, and lets others go."""

from __future__ import annotations

from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.object_selectors import selects
from gpuworkshop.lab.api.objects import (
    Object,
    is_deleted,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.loop import Key


def claim(registry: Registry, kind: Kind, owner: Object) -> list[Object]:
    """The objects of a kind that `owner` controls, by its selector, after adoptions and releases."""
    index, selector = index_of(registry), owner["spec"]["selector"]
    claimed = []
    for obj in index.controlled(kind, owner):
        if selects(selector, labels_of(obj)):
            claimed.append(obj)
        else:
            disown(registry, kind, obj, uid_of(owner))
    if not is_deleted(owner):
        for obj in index.orphans(kind, namespace_of(owner)):
            if not is_deleted(obj) and selects(selector, labels_of(obj)):
                adopted = _adopt(registry, kind, obj, owner)
                claimed += [adopted] if adopted else []
    return claimed


def claimants(registry: Registry, kind: Kind, obj: Object) -> list[Key]:
    """The keys of those of a kind that might adopt an object without a controller."""
    return [
        (namespace_of(owner), name_of(owner))
        for owner in index_of(registry).within(kind, namespace_of(obj))
        if selects(owner["spec"]["selector"], labels_of(obj))
    ]


def disown(registry: Registry, kind: Kind, obj: Object, uid: str) -> None:
    """Take the owner with that UID out of an object's references."""

    def change(live: Object) -> None:
        references = [ref for ref in meta(live).get("ownerReferences") or [] if ref.get("uid") != uid]
        meta(live).pop("ownerReferences", None)
        if references:
            meta(live)["ownerReferences"] = references

    registry.modify(kind, namespace_of(obj), name_of(obj), change)


def _adopt(registry: Registry, kind: Kind, obj: Object, owner: Object) -> Object | None:
    def change(live: Object) -> None:
        meta(live).setdefault("ownerReferences", []).append(owner_reference(owner))

    return registry.modify(kind, namespace_of(obj), name_of(obj), change)
