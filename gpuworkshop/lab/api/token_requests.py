"""What a requested token may be bound to, so that it ends with it: a pod, a secret or a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuworkshop.lab.api.kinds import NODE, POD, SECRET, Kind
from gpuworkshop.lab.api.objects import Object, name_of, namespace_of, uid_of
from gpuworkshop.lab.api.problems import bad_request, conflict
from gpuworkshop.lab.api.registry import Registry

BINDABLE = {kind.kind: kind for kind in (POD, SECRET, NODE)}


def bound_object(registry: Registry, account: Object, reference: Mapping[str, Any] | None) -> Object | None:
    """The object that a TokenRequest's boundObjectRef names; None without one.

    ApiError 400 for a kind that no token is bound to and for another account's pod, 404 for what is not
    there, and 409 where the UID is another one.
    """
    if reference is None:
        return None
    kind = _kind(reference)
    found = registry.get(kind, namespace_of(account), str(reference.get("name") or ""))
    if kind is POD and found["spec"].get("serviceAccountName") != name_of(account):
        raise bad_request(
            f'cannot bind token for serviceaccount "{name_of(account)}" to pod running with different '
            "serviceaccount name."
        )
    uid = reference.get("uid")
    if uid and uid != uid_of(found):
        raise conflict(
            Kind(kind.group, kind.version, kind.kind, kind.kind),  # the real one names the kind here
            name_of(found),
            f"the UID in the bound object reference ({uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated",
        )
    return found


def _kind(reference: Mapping[str, Any]) -> Kind:
    group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
    name = str(reference.get("kind") or "")
    if group or name not in BINDABLE:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={name}")
    return BINDABLE[name]
