"""Services, and the endpoints behind them. The cluster's address of a Service is given by admission."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, fill, mapping, mappings, struct

AFFINITY_SECONDS = 10_800
EXTERNAL = ("NodePort", "LoadBalancer")


def service(obj: Object) -> None:
    """A Service."""
    spec = struct(obj, "spec")
    fill(spec, type="ClusterIP", sessionAffinity="None")
    _affinity(spec)
    for port in mappings(spec, "ports"):
        fill(port, protocol="TCP")
        if port.get("targetPort") in (None, "", 0) and "port" in port:
            port["targetPort"] = port["port"]
    of_type = spec["type"]
    if of_type in EXTERNAL or (of_type == "ClusterIP" and spec.get("externalIPs")):
        fill(spec, externalTrafficPolicy="Cluster")
    if of_type == "LoadBalancer":
        fill(spec, allocateLoadBalancerNodePorts=True)
    if of_type != "ExternalName":
        fill(spec, internalTrafficPolicy="Cluster")
        _families(spec)
    struct(struct(obj, "status"), "loadBalancer")


def _affinity(spec: Mapping) -> None:
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        fill(struct(struct(spec, "sessionAffinityConfig"), "clientIP"), timeoutSeconds=AFFINITY_SECONDS)


def _families(spec: Mapping) -> None:
    """One family of addresses; both for a headless Service whose endpoints somebody else provides."""
    if address := spec.get("clusterIP"):
        fill(spec, clusterIPs=[address])
    if spec.get("clusterIP") == "None" and not mapping(spec, "selector"):
        fill(spec, ipFamilies=["IPv4", "IPv6"], ipFamilyPolicy="RequireDualStack")
    else:
        fill(spec, ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack")


def endpoints(obj: Object) -> None:
    """Endpoints."""
    for subset in mappings(obj, "subsets"):
        for port in mappings(subset, "ports"):
            fill(port, protocol="TCP")


def endpoint_slice(obj: Object) -> None:
    """An EndpointSlice; its list of endpoints is always there."""
    fill(obj, endpoints=[])
    for port in mappings(obj, "ports"):
        fill(port, name="", protocol="TCP")
