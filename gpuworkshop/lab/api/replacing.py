"""What of an object a write may replace: preconditions, the parts that stay, and the generation."""

from __future__ import annotations

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.kinds import NAMESPACE, Kind
from gpuworkshop.lab.api.objects import Object, copy_of, meta, name_of

# The groups whose kinds count no generations.
WITHOUT_GENERATION = ("", "rbac.authorization.k8s.io", "coordination.k8s.io", "discovery.k8s.io")


def check_precondition(kind: Kind, live: Object, uid: str | None, version: str | None) -> None:
    """Conflict where a client believes that the object is another one, or that it has not changed since."""
    if version and version != meta(live)["resourceVersion"]:
        raise problems.conflict(kind, name_of(live))
    if uid and uid != meta(live)["uid"]:
        raise problems.conflict(
            kind,
            name_of(live),
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {meta(live)['uid']}",
        )


def merged(kind: Kind, live: Object, obj: Object, subresource: str) -> Object:
    """`obj` where the subresource covers it, `live` elsewhere."""
    if subresource == "status":
        new = copy_of(live)
        new["status"] = copy_of(obj.get("status") or {})
        return new
    new = copy_of(obj)
    new["apiVersion"], new["kind"] = live["apiVersion"], live["kind"]
    if kind is NAMESPACE and not subresource:  # its finalizers change by `finalize` alone
        new["spec"] = copy_of(live.get("spec") or {})
    if "status" in kind.subresources:
        new.pop("status", None)
        if "status" in live:
            new["status"] = copy_of(live["status"])
    kept = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "generation")
    for field in (*kept, "deletionGracePeriodSeconds", "resourceVersion"):
        meta(new).pop(field, None)
        if field in meta(live):
            meta(new)[field] = meta(live)[field]
    return new


def count_generation(kind: Kind, live: Object, new: Object) -> None:
    """Another generation where more than metadata or status is to change."""
    if kind.group in WITHOUT_GENERATION:
        return
    if _without(live) != _without(new):
        meta(new)["generation"] = int(meta(live).get("generation") or 0) + 1


def _without(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}
