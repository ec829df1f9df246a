"""What stands in the cells of a table of nodes."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object, condition, labels_of

ROLE_PREFIX, ROLE = "node-role.kubernetes.io/", "kubernetes.io/role"


def status_of_node(node: Object) -> str:
    """`Ready`, `NotReady,SchedulingDisabled`, ….

    A node that has said nothing yet is Unknown.
    """
    ready = condition(node, "Ready")
    words = ["Ready" if ready and ready.get("status") == "True" else "NotReady" if ready else "Unknown"]
    if (node.get("spec") or {}).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def roles(node: Object) -> str:
    """The roles that its labels give it."""
    found = {
        label.removeprefix(ROLE_PREFIX) if label.startswith(ROLE_PREFIX) else value
        for label, value in labels_of(node).items()
        if label.startswith(ROLE_PREFIX) or label == ROLE
    }
    return ",".join(sorted(found - {""})) or "<none>"


def address(node: Object, kind: str) -> str:
    """Its address of a type."""
    addresses = (node.get("status") or {}).get("addresses") or ()
    return next((found["address"] for found in addresses if found.get("type") == kind), "<none>")


def info(node: Object, field: str, unknown: str) -> str:
    """What it says of itself."""
    return ((node.get("status") or {}).get("nodeInfo") or {}).get(field) or unknown
