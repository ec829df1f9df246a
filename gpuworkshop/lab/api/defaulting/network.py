"""Ingresses and NetworkPolicies."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import mappings, sequence, struct


def ingress(obj: Object) -> None:
    """An Ingress."""
    struct(obj, "spec")
    struct(struct(obj, "status"), "loadBalancer")


def network_policy(obj: Object) -> None:
    """A NetworkPolicy: about incoming traffic, and outgoing if it has rules for that."""
    spec = struct(obj, "spec")
    struct(spec, "podSelector")
    if not sequence(spec, "policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if sequence(spec, "egress") else ["Ingress"]
    for direction in ("ingress", "egress"):
        for rule in mappings(spec, direction):
            for port in mappings(rule, "ports"):
                if not port.get("protocol"):
                    port["protocol"] = "TCP"
