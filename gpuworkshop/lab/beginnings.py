"""What a cluster has before anybody does anything: namespaces, default roles, and the service of the API."""

from __future__ import annotations

from urllib.parse import urlsplit

from gpuworkshop.lab.api.admission import SYSTEM_PRIORITIES
from gpuworkshop.lab.api.kinds import (
    ENDPOINT_SLICE,
    ENDPOINTS,
    NAMESPACE,
    PRIORITY_CLASS,
    SERVICE,
    Kind,
)
from gpuworkshop.lab.api.objects import Object, meta, name_of, namespace_of
from gpuworkshop.lab.api.rbac import default_roles
from gpuworkshop.lab.api.registry import Registry

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
API_CLUSTER_ADDRESS = "10.100.0.1"


def begin(registry: Registry, server: str) -> None:
    """Create what is missing; the API's own endpoints are set to where it is served this time."""
    for name in NAMESPACES:
        _ensure(registry, NAMESPACE, {"metadata": {"name": name}})
    for role in default_roles():
        kind = registry.kinds.of(role["apiVersion"], role["kind"])
        assert kind is not None, role["kind"]  # noqa: S101  RBAC is built in
        _ensure_role(registry, kind, role)
    for name, value in SYSTEM_PRIORITIES.items():
        _ensure(registry, PRIORITY_CLASS, {"metadata": {"name": name}, "value": value})
    _api_service(registry, server)


def _api_service(registry: Registry, server: str) -> None:
    labels = {"component": "apiserver", "provider": "kubernetes"}
    metadata = {"name": "kubernetes", "namespace": "default", "labels": labels}
    ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": urlsplit(server).port}]
    spec = {"clusterIP": API_CLUSTER_ADDRESS, "ports": ports}
    _ensure(registry, SERVICE, {"metadata": metadata, "spec": spec})
    address, port = urlsplit(server).hostname, {"name": "https", "port": urlsplit(server).port}
    subset = {"addresses": [{"ip": address}], "ports": [{**port, "protocol": "TCP"}]}
    plain = {"name": "kubernetes", "namespace": "default"}
    _put(registry, ENDPOINTS, {"metadata": dict(plain), "subsets": [subset]})
    slice_labels = {"kubernetes.io/service-name": "kubernetes"}
    _put(
        registry,
        ENDPOINT_SLICE,
        {
            "metadata": {**plain, "labels": slice_labels},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": [{**port, "protocol": "TCP"}],
        },
    )


def _ensure(registry: Registry, kind: Kind, obj: Object) -> None:
    if registry.find(kind, namespace_of(obj), name_of(obj)) is None:
        registry.create(kind, obj)


def _ensure_role(registry: Registry, kind: Kind, role: Object) -> None:
    """Create it, or give it the rules that it lacks, as a real server does at its start after an upgrade."""
    found = registry.find(kind, namespace_of(role), name_of(role))
    if found is None:
        registry.create(kind, role)
        return
    rules = found.get("rules") or []
    if missing := [rule for rule in role.get("rules", []) if rule not in rules]:
        registry.update(kind, {**found, "rules": [*rules, *missing]})


def _put(registry: Registry, kind: Kind, obj: Object) -> None:
    if registry.find(kind, namespace_of(obj), name_of(obj)) is None:
        registry.create(kind, obj)
    else:
        meta(obj).pop("resourceVersion", None)
        registry.update(kind, obj)
