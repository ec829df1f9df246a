"""What happens to a new object before it is stored, besides defaults: the accounts and priorities of pods.

The addresses of Services have a module of their own. Quotas and limit ranges are admission too; they live
beside their controllers.
"""

from __future__ import annotations

import secrets

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.defaults import admit_pod_defaults
from gpuworkshop.lab.api.kinds import POD, PRIORITY_CLASS, SERVICE_ACCOUNT, Kind
from gpuworkshop.lab.api.objects import Object, name_of, namespace_of
from gpuworkshop.lab.api.registry import RANDOM_ALPHABET, Registry
from gpuworkshop.lab.api.service_addresses import service_address

__all__ = ["SYSTEM_PRIORITIES", "pod_account", "pod_priority", "service_address"]

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
    """The pod's priority by its class, and the tolerations that every pod gets.

    A pod keeps the priority that it got when it was created, whatever has become of its class.
    """
    if kind is not POD:
        return
    spec = pod["spec"]
    if (live := registry.find(POD, namespace_of(pod), name_of(pod))) is not None:
        for key in ("priority", "preemptionPolicy"):
            if key in live["spec"]:
                spec.setdefault(key, live["spec"][key])
    else:
        _set_priority(registry, pod)
    admit_pod_defaults(pod)


def _set_priority(registry: Registry, pod: Object) -> None:
    spec = pod["spec"]
    found = _priority_class(registry, pod, spec.get("priorityClassName") or "")
    priority = int(found.get("value") or 0)
    if spec.get("priority") not in (None, priority):
        why = (
            f"the integer value of priority ({spec['priority']}) must not be provided in pod spec; priority "
            f"admission controller computed {priority} from the given PriorityClass name"
        )
        raise problems.forbidden(POD, name_of(pod), why)
    if found:
        spec["priorityClassName"] = name_of(found)
    spec["priority"] = priority
    spec.setdefault("preemptionPolicy", found.get("preemptionPolicy") or "PreemptLowerPriority")


def _priority_class(registry: Registry, pod: Object, name: str) -> Object:
    """The class of that name; without a name the cluster's default, {} where there is none."""
    if not name:
        defaults = [found for found in registry.list(PRIORITY_CLASS) if found.get("globalDefault")]
        return min(defaults, key=lambda found: int(found["value"]), default={})
    if (found := registry.find(PRIORITY_CLASS, "", name)) is not None:
        return found
    if name in SYSTEM_PRIORITIES:
        return {"metadata": {"name": name}, "value": SYSTEM_PRIORITIES[name]}
    raise problems.forbidden(POD, name_of(pod), f"no PriorityClass with name {name} was found")
