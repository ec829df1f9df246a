"""A DaemonSet's pod: bound to one node by affinity, and tolerant of what befalls nodes."""

from __future__ import annotations

from typing import Any

from gpuworkshop.lab.api.objects import Object, copy_of, meta, name_of
from gpuworkshop.lab.controllers import node_affinity, taints
from gpuworkshop.lab.controllers.history import REVISION_LABEL
from gpuworkshop.lab.controllers.pods import new_pod

_ALWAYS = (
    (taints.NOT_READY, taints.NO_EXECUTE),
    (taints.UNREACHABLE, taints.NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", taints.NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", taints.NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", taints.NO_SCHEDULE),
    (taints.UNSCHEDULABLE, taints.NO_SCHEDULE),
)
_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", taints.NO_SCHEDULE)


def tolerations(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The tolerations of a template, with those that every DaemonSet's pod gets."""
    own = [dict(found) for found in spec.get("tolerations") or ()]
    added = [*_ALWAYS, *([_ON_HOST_NETWORK] if spec.get("hostNetwork") else [])]
    extra = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in added]
    return [*own, *(each for each in extra if each not in own)]


def fate(owner: Object, node: Object) -> tuple[bool, bool]:
    """Whether the DaemonSet's pod should run on the node, and whether one that runs there may stay."""
    spec = owner["spec"]["template"]["spec"]
    if spec.get("nodeName") not in (None, "", name_of(node)) or not node_affinity.allows(spec, node):
        return False, False
    tolerated = tolerations(spec)
    expelled = taints.untolerated(taints.taints_of(node), tolerated, [taints.NO_EXECUTE])
    refused = taints.untolerated(taints.taints_of(node), tolerated, [taints.NO_SCHEDULE])
    return not expelled and not refused, not expelled


def new_daemon_pod(owner: Object, node: str, digest: str) -> Object:
    """The pod for a node."""
    pod = new_pod(owner, owner["spec"]["template"])
    generation = str(meta(owner)["generation"])
    labels = meta(pod).setdefault("labels", {})
    labels |= {REVISION_LABEL: digest, "pod-template-generation": generation}
    spec = pod["spec"]
    spec["tolerations"] = tolerations(spec)
    by_name = {"key": "metadata.name", "operator": "In", "values": [node]}
    affinity = copy_of(spec.get("affinity") or {})
    # The template's own terms were asked in `fate`; the pod needs only its node.
    affinity.setdefault("nodeAffinity", {})[node_affinity.REQUIRED] = {
        "nodeSelectorTerms": [{"matchFields": [by_name]}]
    }
    spec["affinity"] = affinity
    return pod


def node_of(pod: Object) -> str:
    """The node that a DaemonSet's pod is on, or waits for."""
    if bound := pod["spec"].get("nodeName"):
        return str(bound)
    return next(iter(node_affinity.named_nodes(pod["spec"]) or ()), "")
