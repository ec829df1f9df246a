"""Custom resources: the kinds that a CRD adds, with its own schema and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpuworkshop.lab.api.kinds import BUILT_IN, CRD, Kind, KindTable
from gpuworkshop.lab.api.objects import Object, is_deleted, meta, name_of, namespace_of, timestamp
from gpuworkshop.lab.api.problems import ApiError, Cause
from gpuworkshop.lab.api.wire import structural

if TYPE_CHECKING:
    from gpuworkshop.lab.api.registry import Registry

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
_BUILT_IN = frozenset(kind.resource for kind in BUILT_IN)


def served(crd: Object) -> list[Kind]:
    """The kinds of a CRD, one a version that is served; none where a built-in kind has that name."""
    spec = crd["spec"]
    if name_of(crd) in _BUILT_IN:
        return []
    return [_kind(spec, version) for version in spec.get("versions") or [] if version.get("served")]


def _kind(spec: dict[str, Any], version: dict[str, Any]) -> Kind:
    names = spec["names"]
    return Kind(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        namespaced=spec.get("scope") != "Cluster",
        short_names=tuple(names.get("shortNames") or ()),
        subresources=("status",) if "status" in (version.get("subresources") or {}) else (),
        categories=tuple(names.get("categories") or ()),
    )


def serve(kinds: KindTable, crd: Object) -> None:
    """Serve the kinds of a CRD as it is now, and no longer those that it had before."""
    withdraw(kinds, crd)
    for kind in served(crd):
        kinds.add(kind)


def withdraw(kinds: KindTable, crd: Object) -> None:
    """Serve the kinds of a CRD no longer."""
    for kind in list(kinds):
        if kind.resource == name_of(crd) and kind.resource not in _BUILT_IN:
            kinds.discard(kind)


def begin_cleanup(registry: Registry, crd: Object) -> None:
    """Delete the objects of a CRD that goes; it stays, by a finalizer, until the last one has gone."""
    spec, metadata = crd["spec"], meta(crd)
    kind = next((_kind(spec, version) for version in spec["versions"] if version.get("storage")), None)
    if kind is None or kind.resource in _BUILT_IN:
        return
    for obj in registry.list(kind):
        registry.delete(kind, namespace_of(obj), name_of(obj))
    if registry.list(kind) and CLEANUP not in metadata.get("finalizers", ()):
        metadata["finalizers"] = [*metadata.get("finalizers", ()), CLEANUP]


def check_creation(registry: Registry, kind: Kind) -> None:
    """ApiError 405 for an object whose CRD is on its way out."""
    crd = None if kind.resource in _BUILT_IN else registry.find(CRD, "", kind.resource)
    if crd is not None and is_deleted(crd):
        message = "create not allowed while custom resource definition is terminating"
        raise ApiError(405, "MethodNotAllowed", message)


def end_cleanup(registry: Registry, kind: Kind) -> None:
    """Let a CRD go that has waited for the last object of its kind."""
    if kind.resource in _BUILT_IN or registry.list(kind):
        return
    crd = registry.find(CRD, "", kind.resource)
    if crd is not None and is_deleted(crd) and CLEANUP in meta(crd).get("finalizers", ()):
        registry.modify(CRD, "", kind.resource, _without_cleanup)


def _without_cleanup(crd: Object) -> None:
    kept = [finalizer for finalizer in meta(crd)["finalizers"] if finalizer != CLEANUP]
    meta(crd)["finalizers"] = kept


def accepted(crd: Object, now: float) -> dict[str, Any]:
    """The status of a CRD that is served."""
    spec = crd["spec"]
    reasons = {
        "NamesAccepted": ("NoConflicts", "no conflicts found"),
        "Established": ("InitialNamesAccepted", "the initial names have been accepted"),
    }
    return {
        "acceptedNames": spec["names"],
        "storedVersions": [v["name"] for v in spec.get("versions") or [] if v.get("storage")],
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "message": message,
                "lastTransitionTime": timestamp(now),
            }
            for kind, (reason, message) in reasons.items()
        ],
    }


def schema(registry: Registry, kind: Kind) -> dict[str, Any] | None:
    """The openAPIV3Schema of a custom kind; None for a kind that is built in."""
    version = _version(registry, kind)
    found = ((version or {}).get("schema") or {}).get("openAPIV3Schema")
    return found or ({} if version else None)


def printer_columns(registry: Registry, kind: Kind) -> Sequence[dict[str, Any]] | None:
    """The additionalPrinterColumns of a custom kind; None for a kind that is built in."""
    version = _version(registry, kind)
    return None if version is None else version.get("additionalPrinterColumns") or []


def set_defaults(registry: Registry, kind: Kind, obj: Object) -> None:
    """Drop what the schema does not know, and fill in its defaults."""
    if (found := schema(registry, kind)) is not None:
        structural.prune(obj, found)
        structural.set_defaults(obj, found)


def validate(registry: Registry, kind: Kind, obj: Object) -> list[Cause]:
    """What the schema objects to."""
    found = schema(registry, kind)
    return [] if found is None else structural.validate(obj, found)


def _version(registry: Registry, kind: Kind) -> dict[str, Any] | None:
    if kind.resource in _BUILT_IN or (crd := registry.find(CRD, "", kind.resource)) is None:
        return None
    return next((v for v in crd["spec"]["versions"] if v["name"] == kind.version), None)
