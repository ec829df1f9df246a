"""How one pod appears among the endpoints of a Service: its address, its ports, and whether it is ready."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpuworkshop.lab.api.kinds import NODE
from gpuworkshop.lab.api.objects import Object, is_deleted, labels_of, name_of, namespace_of, uid_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.pods import is_ready

ZONE = "topology.kubernetes.io/zone"


@dataclass(frozen=True, order=True)
class Port:
    """A port of a Service, as it is at a pod."""

    name: str
    port: int
    protocol: str
    app_protocol: str

    def body(self, *, name_always: bool = False) -> dict[str, Any]:
        """As Endpoints write it; EndpointSlices write an empty name, too."""
        body: dict[str, Any] = {"port": self.port, "protocol": self.protocol}
        if self.name or name_always:
            body["name"] = self.name
        if self.app_protocol:
            body["appProtocol"] = self.app_protocol
        return body


def resolved_ports(service: Object, pod: Object) -> tuple[Port, ...]:
    """The Service's ports at that pod; one that names a port which the pod lacks is left out."""
    found = []
    for port in service["spec"].get("ports") or ():
        protocol = port.get("protocol") or "TCP"
        number = _number(port.get("targetPort") or port["port"], protocol, pod)
        if number is not None:
            found.append(Port(port.get("name") or "", number, protocol, port.get("appProtocol") or ""))
    return tuple(found)


def _number(target: int | str, protocol: str, pod: Object) -> int | None:
    if isinstance(target, int):
        return target
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("name") == target and (port.get("protocol") or "TCP") == protocol:
                return int(port["containerPort"])
    return None


def endpoint(registry: Registry, service: Object, pod: Object) -> dict[str, Any]:
    """The pod as an EndpointSlice has it."""
    serving, terminating = is_ready(pod), is_deleted(pod)
    always = bool(service["spec"].get("publishNotReadyAddresses"))
    ready = always or (serving and not terminating)
    body: dict[str, Any] = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": _reference(pod),
    }
    if node := pod["spec"].get("nodeName"):
        body["nodeName"] = node
        zone = labels_of(registry.find(NODE, "", node) or {}).get(ZONE)
        body |= {"zone": zone} if zone else {}
    return body | _hostname(service, pod)


def subsets(service: Object, pods: Sequence[Object]) -> list[dict[str, Any]]:
    """The pods as Endpoints have them: by their ports, the ready apart from the others."""
    groups: dict[tuple[Port, ...], dict[str, list[dict[str, Any]]]] = {}
    always = bool(service["spec"].get("publishNotReadyAddresses"))
    for pod in pods:
        if is_deleted(pod) and not always:
            continue
        side = "addresses" if always or is_ready(pod) else "notReadyAddresses"
        group = groups.setdefault(resolved_ports(service, pod), {})
        group.setdefault(side, []).append(_address(service, pod))
    found = []
    for ports, group in sorted(groups.items()):
        subset: dict[str, Any] = {side: group[side] for side in sorted(group)}
        subset |= {"ports": [port.body() for port in ports]} if ports else {}
        found.append(subset)
    return found


def _address(service: Object, pod: Object) -> dict[str, Any]:
    body = {"ip": pod["status"]["podIP"], "targetRef": _reference(pod)}
    if node := pod["spec"].get("nodeName"):
        body["nodeName"] = node
    return body | _hostname(service, pod)


def _hostname(service: Object, pod: Object) -> dict[str, str]:
    """A pod that has a name of its own under the Service is listed with it."""
    hostname, subdomain = pod["spec"].get("hostname"), pod["spec"].get("subdomain")
    return {"hostname": hostname} if hostname and subdomain == name_of(service) else {}


def _reference(pod: Object) -> dict[str, str]:
    return {
        "kind": "Pod",
        "name": name_of(pod),
        "namespace": namespace_of(pod),
        "uid": uid_of(pod),
    }
