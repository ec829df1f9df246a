"""A StatefulSet's pod: its name, its ordinal, and what it is given because of them."""

from __future__ import annotations

from typing import Any

from gpuworkshop.lab.api.objects import Object, labels_of, meta, name_of
from gpuworkshop.lab.controllers import history
from gpuworkshop.lab.controllers.pods import new_pod

POD_NAME, POD_INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"


def ordinals(owner: Object) -> range:
    """The ordinals of the replicas that are wanted."""
    start = int((owner["spec"].get("ordinals") or {}).get("start") or 0)
    return range(start, start + int(owner["spec"].get("replicas", 1)))


def ordinal_of(owner: Object, pod: Object) -> int | None:
    """The pod's ordinal; None for a pod of another's name."""
    prefix, _, ordinal = name_of(pod).rpartition("-")
    return int(ordinal) if prefix == name_of(owner) and ordinal.isdecimal() else None


def new_stateful_pod(owner: Object, ordinal: int, revision: Object) -> Object:
    """The pod of an ordinal, by the template of a revision."""
    name = f"{name_of(owner)}-{ordinal}"
    pod = new_pod(owner, history.template_in(revision), name)
    labels = meta(pod).setdefault("labels", {})
    labels |= {POD_NAME: name, POD_INDEX: str(ordinal), history.REVISION_LABEL: name_of(revision)}
    spec = pod["spec"]
    spec["hostname"] = name
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    _empty_folders(owner, spec)
    return pod


def revision_name(pod: Object) -> str:
    """The revision that a pod was made by."""
    return labels_of(pod).get(history.REVISION_LABEL, "")


def claim_names(owner: Object) -> list[str]:
    """The names of its volume claim templates; nobody checks that they have one."""
    claims = owner["spec"].get("volumeClaimTemplates") or ()
    return [str((claim.get("metadata") or {}).get("name", "")) for claim in claims]


def _empty_folders(owner: Object, spec: dict[str, Any]) -> None:
    """An empty folder in place of each claim: the lab has no storage."""
    claims = claim_names(owner)
    kept = [volume for volume in spec.get("volumes") or () if volume["name"] not in claims]
    volumes = [*kept, *({"name": name, "emptyDir": {}} for name in claims)]
    if volumes:
        spec["volumes"] = volumes
