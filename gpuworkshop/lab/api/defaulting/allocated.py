"""What the API server has allotted to an object, and which a replacement without it keeps."""

from __future__ import annotations

from gpuworkshop.lab.api.kinds import SERVICE, Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, fill, mapping, mappings

WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


def keep_allocated(kind: Kind, new: Object, live: Object) -> None:
    """Let a Service that is being replaced keep its addresses and node ports, as far as its type has any.

    To be called after the defaults; a port that is still without a node port needs a new one.
    """
    if kind is not SERVICE:
        return
    spec, before = mapping(new, "spec"), mapping(live, "spec")
    if spec.get("type") == "ExternalName":
        _drop_unchanged(spec, before, "clusterIP", "clusterIPs")
    elif before.get("type") != "ExternalName":
        fill(spec, **{key: before[key] for key in ("clusterIP", "clusterIPs") if key in before})
    if spec.get("type") in WITH_NODE_PORTS:
        _keep_node_ports(spec, before)
    elif before.get("type") in WITH_NODE_PORTS:
        _drop_node_ports(spec, before)


def _drop_unchanged(spec: Mapping, before: Mapping, *keys: str) -> None:
    for key in keys:
        if spec.get(key) == before.get(key):
            spec.pop(key, None)


def _keep_node_ports(spec: Mapping, before: Mapping) -> None:
    allotted = {_identity(port): port.get("nodePort") for port in mappings(before, "ports")}
    used = {port.get("nodePort") for port in mappings(spec, "ports")}
    for port in mappings(spec, "ports"):
        number = allotted.get(_identity(port))
        if number and not port.get("nodePort") and number not in used:
            port["nodePort"] = number


def _drop_node_ports(spec: Mapping, before: Mapping) -> None:
    """A client that changes only the type sends the old numbers back; others are left to be refused."""
    allotted = [port.get("nodePort") for port in mappings(before, "ports")]
    if [port.get("nodePort") for port in mappings(spec, "ports")] == allotted:
        for port in mappings(spec, "ports"):
            port.pop("nodePort", None)
        _drop_unchanged(spec, before, "externalTrafficPolicy", "allocateLoadBalancerNodePorts")


def _identity(port: Mapping) -> tuple[str, str]:
    return str(port.get("protocol")), str(port.get("port"))
