"""Ingresses and NetworkPolicies."""

from __future__ import annotations

import ipaddress

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, sequence, text, texts
from gpuworkshop.lab.api.validation import formats
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.selectors import label_selector

PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
NOTHING = "either `defaultBackend` or `rules` must be specified"
PROTOCOLS = ("SCTP", "TCP", "UDP")
BLOCK_ALONE = "may not specify both ipBlock and another peer"


def ingress(found: Findings, obj: Object) -> None:
    """An Ingress."""
    spec = mapping(obj, "spec")
    if not mappings(spec, "rules") and not mapping(spec, "defaultBackend"):
        found.invalid("spec", spec, NOTHING)
    if isinstance(backend := spec.get("defaultBackend"), dict):
        _backend(found, backend, "spec.defaultBackend")
    for index, rule in enumerate(mappings(spec, "rules")):
        field = f"spec.rules[{index}]"
        if host := text(rule, "host"):
            _host(found, host, f"{field}.host")
        if isinstance(http := rule.get("http"), dict):
            _paths(found, http, f"{field}.http.paths")
    for index, tls in enumerate(mappings(spec, "tls")):
        for position, host in enumerate(texts(tls, "hosts")):
            _host(found, host, f"spec.tls[{index}].hosts[{position}]")


def _host(found: Findings, host: str, field: str) -> None:
    rule = formats.wildcard_subdomain if host.startswith("*") else formats.dns_subdomain
    found.fault(field, host, rule(host))


def _paths(found: Findings, http: Mapping, field: str) -> None:
    if not sequence(http, "paths"):
        found.required(field)
    for index, path in enumerate(mappings(http, "paths")):
        at, sort, where = f"{field}[{index}]", text(path, "pathType"), text(path, "path")
        if not sort:
            found.required(f"{at}.pathType", "pathType must be specified")
        elif sort not in PATH_TYPES:
            found.unsupported(f"{at}.pathType", sort, PATH_TYPES)
        if not where.startswith("/") and (where or sort != "ImplementationSpecific"):
            found.invalid(f"{at}.path", where, "must be an absolute path")
        _backend(found, mapping(path, "backend"), f"{at}.backend")


def _backend(found: Findings, backend: Mapping, field: str) -> None:
    service, resource = backend.get("service"), backend.get("resource")
    if isinstance(service, dict) and resource is not None:
        found.invalid(field, "", "cannot set both resource and service backends")
        return
    if isinstance(resource, dict):
        return
    if not isinstance(service, dict):
        found.required(field, "resource or service backend is required")
        return
    if name := text(service, "name"):
        found.fault(f"{field}.service.name", name, formats.dns_label_1035(name))
    else:
        found.required(f"{field}.service.name")
    port = mapping(service, "port")
    if name := text(port, "name"):
        found.fault(f"{field}.service.port.name", name, formats.port_name(name))
    elif number := port.get("number"):
        found.fault(f"{field}.service.port.number", number, formats.port(number))
    else:
        found.required(field, "port name or number is required")


def network_policy(found: Findings, obj: Object) -> None:
    """A NetworkPolicy."""
    spec = mapping(obj, "spec")
    label_selector(found, mapping(spec, "podSelector"), "spec.podSelector")
    for index, sort in enumerate(texts(spec, "policyTypes")):
        found.one_of(f"spec.policyTypes[{index}]", sort, ("Egress", "Ingress"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(mappings(spec, direction)):
            field = f"spec.{direction}[{index}]"
            for position, port in enumerate(mappings(rule, "ports")):
                _port(found, port, f"{field}.ports[{position}]")
            for position, peer in enumerate(mappings(rule, peers)):
                _peer(found, peer, f"{field}.{peers}[{position}]")


def _port(found: Findings, port: Mapping, field: str) -> None:
    found.one_of(f"{field}.protocol", port.get("protocol"), PROTOCOLS, optional=True)
    if (number := port.get("port")) is not None:
        found.fault(f"{field}.port", number, formats.port_or_name(number))


def _peer(found: Findings, peer: Mapping, field: str) -> None:
    selectors = [key for key in ("podSelector", "namespaceSelector") if isinstance(peer.get(key), dict)]
    block = peer.get("ipBlock")
    if not selectors and not isinstance(block, dict):
        found.required(field, "must specify a peer")
    for key in selectors:
        label_selector(found, peer[key], f"{field}.{key}")
    if not isinstance(block, dict):
        return
    if selectors:
        found.forbidden(field, BLOCK_ALONE)
    try:
        ipaddress.ip_network(text(block, "cidr"), strict=False)
    except ValueError:
        words = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        found.invalid(f"{field}.ipBlock.cidr", text(block, "cidr"), words)
