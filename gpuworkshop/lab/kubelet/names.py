"""Names and addresses of Services for curl in a pod: nothing resolves them on this machine.

Each container's `.curlrc` sends what is meant for a Service to one of its pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.lab.api.kinds import ENDPOINTS, SERVICE
from gpuworkshop.lab.api.objects import Object, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry


def curl_config(registry: Registry, namespace: str) -> str:
    """The `.curlrc` of a pod in `namespace`."""
    return "".join(
        f'connect-to = "{host}:{port}:{address}:{target}"\n'
        for service in registry.list(SERVICE)
        for port, address, target in _ports(registry, service)
        for host in _hosts(service, namespace)
    )


def _hosts(service: Object, namespace: str) -> Iterator[str]:
    full = f"{name_of(service)}.{namespace_of(service)}"
    if namespace == namespace_of(service):
        yield name_of(service)
    yield from (full, f"{full}.svc", f"{full}.svc.cluster.local")
    if (address := service["spec"].get("clusterIP") or "None") != "None":
        yield address


def _ports(registry: Registry, service: Object) -> Iterator[tuple[int, str, int]]:
    """Each port of the service, and the address and port of the first pod behind it."""
    endpoints = registry.find(ENDPOINTS, namespace_of(service), name_of(service)) or {}
    for port in service["spec"].get("ports") or []:
        for subset in endpoints.get("subsets") or []:
            target = next(
                (each["port"] for each in subset.get("ports") or [] if each.get("name") == port.get("name")),
                None,
            )
            if target and subset.get("addresses"):
                yield port["port"], subset["addresses"][0]["ip"], target
                break
