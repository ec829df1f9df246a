"""The cluster addresses and node ports of Services: allotted when they are asked for, and never twice.

Nothing listens on them: the lab's proxies go straight to the pods.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.defaulting.allocated import WITH_NODE_PORTS
from gpuworkshop.lab.api.kinds import SERVICE, Kind
from gpuworkshop.lab.api.objects import Object, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.validation.services import NODE_PORTS

NETWORK = ipaddress.ip_network("10.100.0.0/16")  # as on EKS
KEPT_FREE = 256  # the first ones are for the cluster's own services


def service_address(registry: Registry, kind: Kind, service: Object) -> None:
    """Give a Service its cluster address and its node ports. ApiError 422 for those that another one has."""
    if kind is not SERVICE or service["spec"].get("type") == "ExternalName":
        return
    own = (namespace_of(service), name_of(service))
    others = [
        found["spec"] for found in registry.list(SERVICE) if (namespace_of(found), name_of(found)) != own
    ]
    _give_address(service, {found.get("clusterIP") for found in others})
    if service["spec"].get("type") in WITH_NODE_PORTS:
        _give_ports(service, {port.get("nodePort") for found in others for port in found.get("ports") or []})


def _give_address(service: Object, taken: set[str | None]) -> None:
    spec = service["spec"]
    address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or []), "")
    if not address:
        while not address or address in taken:
            address = str(NETWORK[KEPT_FREE + secrets.randbelow(NETWORK.num_addresses - 2 * KEPT_FREE)])
    elif why := _address_fault(address, taken):
        raise _invalid(
            service, "spec.clusterIPs", f'["{address}"]', f"failed to allocate IP {address}: {why}"
        )
    spec["clusterIP"], spec["clusterIPs"] = address, [address]


def _address_fault(address: str, taken: set[str | None]) -> str:
    try:
        parsed = None if address == "None" else ipaddress.ip_address(address)
    except ValueError:
        return ""  # validation says so
    if parsed is None:
        return ""
    if parsed not in NETWORK:
        return f"provided IP is not in the valid range. The range of valid IPs is {NETWORK}"
    return "provided IP is already allocated" if address in taken else ""


def _give_ports(service: Object, used: set[int | None]) -> None:
    ports = service["spec"].get("ports") or []
    for index, port in enumerate(ports):
        if (number := port.get("nodePort")) and number in used:
            why = "provided port is already allocated"
            raise _invalid(service, f"spec.ports[{index}].nodePort", str(number), why)
    used |= {port.get("nodePort") for port in ports}
    for port in ports:
        if not port.get("nodePort"):
            port["nodePort"] = _free_port(ports, port, used)
            used.add(port["nodePort"])


def _free_port(ports: Iterable[Mapping[str, Any]], port: Mapping[str, Any], used: set[int | None]) -> int:
    """That of the same port under another protocol, such as DNS by TCP and by UDP; else a free one."""
    for other in ports:
        same = other.get("port") == port.get("port") and other.get("protocol") != port.get("protocol")
        if same and other.get("nodePort"):
            return int(other["nodePort"])
    found = next((number for number in NODE_PORTS if number not in used), None)
    if found is None:
        message = "Internal error occurred: failed to allocate a nodePort: range is full"
        raise problems.ApiError(500, "InternalError", message)
    return found


def _invalid(service: Object, field: str, value: str, why: str) -> problems.ApiError:
    cause = problems.Cause("FieldValueInvalid", f"Invalid value: {value}: {why}", field)
    return problems.invalid(SERVICE, name_of(service), [cause])
