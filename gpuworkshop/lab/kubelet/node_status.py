"""The status of a simulated node, complete as on EKS: addresses, capacity, conditions, nodeInfo."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from gpuworkshop.lab.api.objects import Object, condition, labels_of, name_of, uid_of
from gpuworkshop.lab.kubelet.resources import GPU

KUBELET_PORT = 10250
LEASE_S = 40  # a real kubelet renews it every 10 s, so that it may fail three times
DISK_KIB = 83_873_772  # eksctl's default volume of 80 GiB
_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


class Machine(Protocol):
    """An instance type."""

    @property
    def cpus(self) -> int:
        """Virtual CPUs."""

    @property
    def memory_gib(self) -> float:
        """Memory."""

    @property
    def gpus(self) -> int:
        """How many GPUs it has."""

    @property
    def gpu_model(self) -> str:
        """Their model, as the exporter names it."""

    @property
    def pods(self) -> int:
        """How many pods EKS lets it have."""


def status_of(
    node: Object, machine: Machine, address: str, version: str, gpus: tuple[int, int] | None, now: str
) -> dict[str, Any]:
    """The whole status; `gpus` are how many nvidia.com/gpu there are and how many can be had, if any."""
    capacity, allocatable = _capacity(machine), _allocatable(machine)
    if gpus is not None:
        capacity[GPU], allocatable[GPU] = map(str, gpus)
    return {
        **(node.get("status") or {}),
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": labels_of(node).get("kubernetes.io/hostname") or name_of(node)},
            {"type": "InternalDNS", "address": name_of(node)},
        ],
        "capacity": capacity,
        "allocatable": allocatable,
        "conditions": [_condition(node, *each, now) for each in _HEALTHY],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
        "nodeInfo": _node_info(node, version),
        "images": [],
    }


def lease_of(node: Object, now: float) -> Object:
    """The node's Lease, renewed at the Unix time `now`."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": name_of(node), "uid": uid_of(node)}
    return {
        "metadata": {"name": name_of(node), "namespace": "kube-node-lease", "ownerReferences": [owner]},
        "spec": {
            "holderIdentity": name_of(node),
            "leaseDurationSeconds": LEASE_S,
            "renewTime": f"{datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        },
    }


def _condition(node: Object, kind: str, status: str, reason: str, message: str, now: str) -> dict[str, Any]:
    before: Mapping[str, Any] = condition(node, kind) or {}
    changed = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastHeartbeatTime": now,
        "lastTransitionTime": changed or now,
    }


def _capacity(machine: Machine) -> dict[str, str]:
    return {
        "cpu": str(machine.cpus),
        "memory": f"{_memory_kib(machine)}Ki",
        "pods": str(machine.pods),
        "ephemeral-storage": f"{DISK_KIB}Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
    }


def _allocatable(machine: Machine) -> dict[str, str]:
    """What is left by the reservations of EKS's images: CPU by core, memory by pod and for eviction."""
    shares = [60, 10, 5, 5, *[2.5] * max(0, machine.cpus - 4)][: machine.cpus]
    reserved_kib = (255 + 11 * machine.pods + 100) * 1024
    return {
        **_capacity(machine),
        "cpu": f"{machine.cpus * 1000 - int(sum(shares))}m",
        "memory": f"{_memory_kib(machine) - reserved_kib}Ki",
        "ephemeral-storage": str(DISK_KIB * 1024 * 9 // 10 - 2**30),
    }


def _memory_kib(machine: Machine) -> int:
    """Some of what the type promises is the firmware's and the kernel's."""
    return int(machine.memory_gib * 2**20 * 0.97)


def _node_info(node: Object, version: str) -> dict[str, str]:
    own = uuid.uuid5(uuid.NAMESPACE_DNS, uid_of(node))
    return {
        "architecture": labels_of(node).get("kubernetes.io/arch", "amd64"),
        "bootID": str(uuid.uuid5(own, "boot")),
        "containerRuntimeVersion": "containerd://1.7.27",
        "kernelVersion": "6.1.0-simulated",
        "kubeProxyVersion": version,
        "kubeletVersion": version,
        "machineID": own.hex,
        "operatingSystem": "linux",
        "osImage": "Amazon Linux 2023 (simulated)",
        "systemUUID": str(own),
    }
