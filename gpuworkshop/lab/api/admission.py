"""What happens to a new object before it is stored, besides defaults: accounts, priorities, addresses.

Quotas and limit ranges are admission too; they live beside their controllers.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterator

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.defaults import admit_pod_defaults
from gpuworkshop.lab.api.kinds import POD, PRIORITY_CLASS, SERVICE, SERVICE_ACCOUNT, Kind
from gpuworkshop.lab.api.objects import Object, name_of, namespace_of
from gpuworkshop.lab.api.registry import RANDOM_ALPHABET, Registry

SERVICE_NETWORK = ipaddress.ip_network("10.100.0.0/16")  # as on EKS
NODE_PORTS = range(30_000, 32_768)
SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  where pods look for it


def pod_account(registry: Registry, kind: Kind, pod: Object) -> None:
    """Give a pod its ServiceAccount, and mount the account's token."""
    if kind is not POD:
        return
    spec = pod["spec"]
    name = spec.setdefault("serviceAccountName", spec.get("serviceAccount") or "default")
    spec["serviceAccount"] = name
    account = registry.find(SERVICE_ACCOUNT, namespace_of(pod), name)
    if account is None:
        if name != "default":  # that one is on its way in every namespace
            account_name = f"{namespace_of(pod)}/{name}"
            why = f'error looking up service account {account_name}: serviceaccount "{name}" not found'
            raise problems.forbidden(POD, name_of(pod), why)
        account = {}
    mounted = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken"))
    if mounted is not False:
        _mount_token(spec)


def _mount_token(spec: Object) -> None:
    containers = [*spec.get("initContainers", []), *spec["containers"]]
    without = [
        container
        for container in containers
        if all(mount.get("mountPath") != TOKEN_PATH for mount in container.get("volumeMounts") or [])
    ]
    if not without:
        return
    volume = "kube-api-access-" + "".join(secrets.choice(RANDOM_ALPHABET) for _ in range(5))
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    spec.setdefault("volumes", []).append(
        {"name": volume, "projected": {"sources": sources, "defaultMode": 420}}
    )
    for container in without:
        mount = {"name": volume, "readOnly": True, "mountPath": TOKEN_PATH}
        container.setdefault("volumeMounts", []).append(mount)


def pod_priority(registry: Registry, kind: Kind, pod: Object) -> None:
    """The pod's priority by its class, and the tolerations that every pod gets."""
    if kind is not POD:
        return
    spec = pod["spec"]
    name = spec.get("priorityClassName")
    priority = _priority(registry, pod, name) if name else 0
    spec["priority"] = priority
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    admit_pod_defaults(pod)


def _priority(registry: Registry, pod: Object, name: str) -> int:
    if name in SYSTEM_PRIORITIES:
        return SYSTEM_PRIORITIES[name]
    if (found := registry.find(PRIORITY_CLASS, "", name)) is None:
        raise problems.forbidden(POD, name_of(pod), f"no PriorityClass with name {name} was found")
    return int(found["value"])


def service_address(registry: Registry, kind: Kind, service: Object) -> None:
    """Give a Service its cluster address and its node ports. Proxies go straight to its pods."""
    if kind is not SERVICE:
        return
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return
    others = [found["spec"] for found in registry.list(SERVICE)]
    if not spec.get("clusterIP"):
        taken = {found.get("clusterIP") for found in others}
        spec["clusterIP"] = next(address for address in _addresses() if address not in taken)
    spec["clusterIPs"] = [spec["clusterIP"]]
    if spec.get("type") not in ("NodePort", "LoadBalancer"):
        return
    used = {port.get("nodePort") for found in others for port in found.get("ports") or []}
    for port in spec.get("ports") or []:
        if not port.get("nodePort"):
            port["nodePort"] = next(number for number in NODE_PORTS if number not in used)
        used.add(port["nodePort"])


def _addresses() -> Iterator[str]:
    """Random addresses of the services' network; the first ones are kept for the cluster's own."""
    while True:
        yield str(SERVICE_NETWORK[256 + secrets.randbelow(SERVICE_NETWORK.num_addresses - 512)])
