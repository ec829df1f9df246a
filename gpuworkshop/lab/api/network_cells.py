"""What stands in the cells of tables of services, endpoints and ingresses."""

from __future__ import annotations

from collections.abc import Sequence

from gpuworkshop.lab.api.objects import Object, annotations_of

NONE = "<none>"
SHOWN = 3  # of a list, before it is cut
INGRESS_CLASS = "kubernetes.io/ingress.class"


def load_balancer(obj: Object) -> str:
    """The addresses of its load balancer."""
    found = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return ",".join(sorted({point.get("ip") or point.get("hostname") or "" for point in found} - {""}))


def external_ip(service: Object) -> str:
    """Where a Service is reached from outside the cluster."""
    spec = service.get("spec") or {}
    external = ",".join(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ExternalName":
            return str(spec.get("externalName") or "")
        case "LoadBalancer":
            return ",".join(filter(None, (load_balancer(service), external))) or "<pending>"
    return external or NONE


def service_ports(service: Object) -> str:
    """`80/TCP,443:30443/TCP`."""
    ports = (service.get("spec") or {}).get("ports") or ()
    shown = []
    for port in ports:
        number = f"{port['port']}:{port['nodePort']}" if port.get("nodePort") else str(port["port"])
        shown.append(f"{number}/{port.get('protocol') or 'TCP'}")
    return ",".join(shown) or NONE


def endpoints(obj: Object) -> str:
    """`127.2.1.2:9400,127.2.2.2:9400,127.2.3.2:9400 + 2 more...`."""
    subsets = obj.get("subsets") or ()
    if not subsets:
        return NONE
    found: list[str] = []
    for subset in subsets:
        addresses = [address["ip"] for address in subset.get("addresses") or ()]
        ports = [port["port"] for port in subset.get("ports") or ()]
        found += [_joined(ip, port) for port in ports for ip in addresses] if ports else addresses
    return _cut(found)


def slice_ports(endpoint_slice: Object) -> str:
    """The ports of an EndpointSlice."""
    ports = endpoint_slice.get("ports") or ()
    return _cut([str(port.get("port") or port.get("name") or "*") for port in ports]) or "<unset>"


def slice_endpoints(endpoint_slice: Object) -> str:
    """The addresses of an EndpointSlice."""
    found = endpoint_slice.get("endpoints") or ()
    return _cut([address for endpoint in found for address in endpoint.get("addresses") or ()]) or "<unset>"


def ingress_class(ingress: Object) -> str:
    """Its class."""
    named = (ingress.get("spec") or {}).get("ingressClassName")
    return str(named or annotations_of(ingress).get(INGRESS_CLASS) or NONE)


def ingress_hosts(ingress: Object) -> str:
    """The hosts of its rules; `*` is any."""
    rules = (ingress.get("spec") or {}).get("rules") or ()
    return _cut([rule["host"] for rule in rules if rule.get("host")]) or "*"


def _joined(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _cut(found: Sequence[str]) -> str:
    """A list, cut after the first few."""
    shown = ",".join(found[:SHOWN])
    return f"{shown} + {len(found) - SHOWN} more..." if len(found) > SHOWN else shown
