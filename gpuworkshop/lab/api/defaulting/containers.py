"""Containers of a pod: their image, ports, probes, environment and resources."""

from __future__ import annotations

from gpuworkshop.lab.api.defaulting import amounts
from gpuworkshop.lab.api.shapes import Mapping, fill, mapping, mappings, struct, text

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_PROBE_NUMBERS = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def container(found: Mapping) -> None:
    """A container of any sort."""
    fill(
        found,
        imagePullPolicy=pull_policy(text(found, "image")),
        terminationMessagePath="/dev/termination-log",
        terminationMessagePolicy="File",
    )
    resources = struct(found, "resources")
    amounts.tidy(resources, "limits")
    amounts.tidy(resources, "requests")
    for port in mappings(found, "ports"):
        fill(port, protocol="TCP")
    for variable in mappings(found, "env"):
        source = mapping(variable, "valueFrom")
        field_reference(source)
        resource_reference(source)
    for key in PROBES:
        if isinstance(found.get(key), dict):
            _probe(found[key])
    for handler in ("postStart", "preStop"):
        _http_get(mapping(found, "lifecycle", handler))


def pull_policy(image: str) -> str:
    """`Always` for an image tagged `latest`, or with neither a tag nor a digest."""
    last = image.rpartition("/")[2]
    if not image or "@" in last:
        return "IfNotPresent"
    tag = last.partition(":")[2]
    return "Always" if tag in ("", "latest") else "IfNotPresent"


def field_reference(source: Mapping) -> None:
    """The `fieldRef` in `source`."""
    if isinstance(reference := source.get("fieldRef"), dict):
        fill(reference, apiVersion="v1")


def resource_reference(source: Mapping) -> None:
    """The `resourceFieldRef` in `source`; a divisor of 0 stands for 1."""
    if isinstance(reference := source.get("resourceFieldRef"), dict):
        fill(reference, divisor="0")
        amounts.tidy_one(reference, "divisor")


def requests_from_limits(found: Mapping) -> None:
    """Request what is limited, where no request says otherwise."""
    resources = mapping(found, "resources")
    if limits := mapping(resources, "limits"):
        requests = struct(resources, "requests")
        for name, limit in limits.items():
            requests.setdefault(name, limit)


def host_ports(found: Mapping) -> None:
    """In the host's network, a container's port is the host's."""
    for port in mappings(found, "ports"):
        if not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]


def _probe(probe: Mapping) -> None:
    for key, value in _PROBE_NUMBERS.items():
        if probe.get(key) in (None, 0):
            probe[key] = value
    _http_get(probe)
    if isinstance(grpc := probe.get("grpc"), dict):
        fill(grpc, service="")


def _http_get(handler: Mapping) -> None:
    if isinstance(action := handler.get("httpGet"), dict):
        fill(action, path="/", scheme="HTTP")
