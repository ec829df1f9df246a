"""Services, and the endpoints behind them."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, pairs, sequence, text, texts
from gpuworkshop.lab.api.validation import formats
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.metadata import labels

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
PROTOCOLS = ("SCTP", "TCP", "UDP")
NODE_PORTS = range(30_000, 32_768)
NODE_PORT_WORDS = (
    "provided port is not in the valid range. The range of valid ports is "
    f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
)
SET_ONCE = "may not change once set"
ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")


def service(found: Findings, obj: Object) -> None:
    """A Service."""
    spec = mapping(obj, "spec")
    of_type = spec.get("type")
    found.one_of("spec.type", of_type, TYPES)
    found.one_of("spec.sessionAffinity", spec.get("sessionAffinity"), ("ClientIP", "None"))
    for key in ("externalTrafficPolicy", "internalTrafficPolicy"):
        found.one_of(f"spec.{key}", spec.get(key), ("Cluster", "Local"), optional=True)
    labels(found, pairs(spec, "selector"), "spec.selector")
    if of_type == "ExternalName":
        _external_name(found, text(spec, "externalName"))
    elif not sequence(spec, "ports") and spec.get("clusterIP") != "None":
        found.required("spec.ports")
    _ports(found, spec)
    if of_type in ("LoadBalancer", "NodePort") and spec.get("clusterIP") == "None":
        found.invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {of_type} services")
    for index, address in enumerate(texts(spec, "clusterIPs")):
        if address not in ("", "None"):
            found.fault(f"spec.clusterIPs[{index}]", address, formats.ip_address(address))
    for index, address in enumerate(texts(spec, "externalIPs")):
        found.fault(f"spec.externalIPs[{index}]", address, formats.ip_address(address))


def _external_name(found: Findings, name: str) -> None:
    if name:
        found.fault("spec.externalName", name, formats.dns_subdomain(name.removesuffix(".")))
    else:
        found.required("spec.externalName")


def _ports(found: Findings, spec: Mapping) -> None:
    ports = mappings(spec, "ports")
    for index, port in enumerate(ports):
        at = f"spec.ports[{index}]"
        _name(found, port, at, required=len(ports) > 1)
        found.fault(f"{at}.port", port.get("port", 0), formats.port(port.get("port")))
        found.one_of(f"{at}.protocol", port.get("protocol"), PROTOCOLS)
        target = port.get("targetPort")
        found.fault(f"{at}.targetPort", target, formats.port_or_name(target))
        _node_port(found, port.get("nodePort"), spec.get("type"), f"{at}.nodePort")
    found.unique((f"spec.ports[{i}].name", text(port, "name")) for i, port in enumerate(ports))
    for key in ("port", "nodePort"):
        where = (".nodePort",) if key == "nodePort" else ("",)
        found.unique(
            (f"spec.ports[{i}]{where[0]}", {"protocol": port.get("protocol"), key: port[key]})
            for i, port in enumerate(ports)
            if port.get(key)
        )


def _name(found: Findings, port: Mapping, field: str, *, required: bool) -> None:
    if name := text(port, "name"):
        found.fault(f"{field}.name", name, formats.dns_label(name))
    elif required:
        found.required(f"{field}.name")


def _node_port(found: Findings, number: object, of_type: object, field: str) -> None:
    if not number:
        return
    if of_type == "ClusterIP":
        found.forbidden(field, "may not be used when `type` is 'ClusterIP'")
    elif number not in NODE_PORTS:
        found.invalid(field, number, NODE_PORT_WORDS)


def service_update(found: Findings, new: Object, old: Object) -> None:
    """A Service's address stays, as long as it has one."""
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    address, earlier = spec.get("clusterIP"), before.get("clusterIP")
    if earlier and address != earlier and "ExternalName" not in (spec.get("type"), before.get("type")):
        found.invalid("spec.clusterIPs[0]", [address] if address else [], SET_ONCE)


def endpoints(found: Findings, obj: Object) -> None:
    """Endpoints. Addresses of the loopback may be there, since the pods of the lab live on it."""
    for index, subset in enumerate(mappings(obj, "subsets")):
        at = f"subsets[{index}]"
        if not sequence(subset, "addresses") and not sequence(subset, "notReadyAddresses"):
            found.required(at, "must specify `addresses` or `notReadyAddresses`")
        for key in ("addresses", "notReadyAddresses"):
            for position, address in enumerate(mappings(subset, key)):
                ip = text(address, "ip")
                found.fault(f"{at}.{key}[{position}].ip", ip, formats.ip_address(ip))
        ports = mappings(subset, "ports")
        for position, port in enumerate(ports):
            field = f"{at}.ports[{position}]"
            _name(found, port, field, required=len(ports) > 1)
            found.fault(f"{field}.port", port.get("port", 0), formats.port(port.get("port")))
            found.one_of(f"{field}.protocol", port.get("protocol"), PROTOCOLS)


def endpoint_slice(found: Findings, obj: Object) -> None:
    """An EndpointSlice."""
    found.one_of("addressType", obj.get("addressType"), ADDRESS_TYPES)
    for index, endpoint in enumerate(mappings(obj, "endpoints")):
        field = f"endpoints[{index}].addresses"
        if not sequence(endpoint, "addresses"):
            found.required(field, "must contain at least 1 address")
        if obj.get("addressType") in ("IPv4", "IPv6"):
            for position, address in enumerate(texts(endpoint, "addresses")):
                found.fault(f"{field}[{position}]", address, formats.ip_address(address))
    for index, port in enumerate(mappings(obj, "ports")):
        found.one_of(f"ports[{index}].protocol", port.get("protocol"), PROTOCOLS)
        if name := text(port, "name"):
            found.fault(f"ports[{index}].name", name, formats.dns_label(name))
    found.unique((f"ports[{i}].name", text(port, "name")) for i, port in enumerate(mappings(obj, "ports")))


def endpoint_slice_update(found: Findings, new: Object, old: Object) -> None:
    """The type of the addresses stays."""
    found.unchanged("addressType", new.get("addressType"), old.get("addressType"))
