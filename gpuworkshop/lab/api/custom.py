"""Custom resources: the kinds that a CRD adds, with its own schema and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpuworkshop.lab.api.kinds import BUILT_IN, CRD, Kind, KindTable
from gpuworkshop.lab.api.objects import Object, name_of, timestamp
from gpuworkshop.lab.api.problems import Cause
from gpuworkshop.lab.api.wire import structural

if TYPE_CHECKING:
    from gpuworkshop.lab.api.registry import Registry

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
    for kind in list(kinds):
        if kind.resource == name_of(crd) and kind.resource not in _BUILT_IN:
            kinds.discard(kind)
    for kind in served(crd):
        kinds.add(kind)


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
