"""Which container holds which GPU of a node, and what it does there.

A device is a GPU's UUID, or `UUID::k` for one of its replicas under time-slicing. What is given to a pod is
kept in a checkpoint, as by a real kubelet, so that a pod has the same GPU after a restart of the lab. From
it follows the node's GPU file, which the node's exporter replays.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpuworkshop.lab.simulation import SimulatedNode
from gpuworkshop.processes.state import replace_file

# The namespace of the UUIDs of simulated GPUs: a node's are always the same.
_UUIDS = uuid.UUID("0d5b8c1e-96a4-5d0e-8f5b-2b7f4e1a9c33")
_REPLICA = "::"


class NoDevice(Exception):
    """Fewer devices are free than the scheduler believed."""


@dataclass(frozen=True)
class Holding:
    """What one pod holds: the devices of each container, and its load in the exporter's words."""

    namespace: str
    pod: str
    load: Mapping[str, Any]
    devices: Mapping[str, list[str]]


class Devices:
    """The GPUs of one node, `count` of `model`, each offered `replicas` times."""

    def __init__(self, node: SimulatedNode, model: str, count: int) -> None:
        self.node = node
        self.replicas = 1
        self.uuids = [f"GPU-{uuid.uuid5(_UUIDS, f'{node.name}/{index}')}" for index in range(count)]
        self._model = model
        self._checkpoint = node.path.with_suffix(".devices.json")
        self._held = {uid: held for uid, held in _read(self._checkpoint).items() if self._has(held)}
        self._write()

    def keep_only(self, pods: Collection[str]) -> None:
        """Forget what pods held that are gone, given the UIDs of those that are there."""
        for uid in set(self._held) - set(pods):
            self.free(uid)

    def offered(self) -> list[str]:
        """Every device that the node gives away now."""
        if self.replicas == 1:
            return list(self.uuids)
        return [f"{gpu}{_REPLICA}{number}" for gpu in self.uuids for number in range(self.replicas)]

    def assign(
        self, uid: str, namespace: str, pod: str, wanted: Mapping[str, int], load: Mapping[str, Any]
    ) -> None:
        """Give each container as many devices as it wants; a pod keeps what it holds. Raises NoDevice."""
        held = self._held.get(uid)
        if held and {name: len(ids) for name, ids in held.devices.items()} == dict(wanted):
            devices = held.devices
        else:
            self._held.pop(uid, None)
            devices = self._choose(wanted)
        self._held[uid] = Holding(namespace, pod, dict(load), devices)
        self._write()

    def free(self, uid: str) -> None:
        """Take back what a pod held."""
        if self._held.pop(uid, None):
            self._write()

    def remove(self) -> None:
        """The node is gone, and its GPUs with it."""
        self._held.clear()
        for path in (self.node.path, self._checkpoint, self.node.path.with_suffix(".lock")):
            path.unlink(missing_ok=True)

    def held_by(self, uid: str, container: str) -> list[str]:
        """The devices of a container."""
        held = self._held.get(uid)
        return list(held.devices.get(container, [])) if held else []

    def _choose(self, wanted: Mapping[str, int]) -> dict[str, list[str]]:
        chosen: dict[str, list[str]] = {}
        for container, count in wanted.items():
            chosen[container] = []
            for _ in range(count):
                taken = self._taken() | {device for each in chosen.values() for device in each}
                free = [device for device in self.offered() if device not in taken]
                if not free:
                    asked, left = sum(wanted.values()), len(self.offered()) - len(self._taken())
                    raise NoDevice(
                        "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. "
                        f"Requested: {asked}, Available: {max(left, 0)}, which is unexpected"
                    )
                users = Counter(gpu_of(device) for device in taken)
                chosen[container].append(min(free, key=lambda device: users[gpu_of(device)]))
        return chosen

    def _taken(self) -> set[str]:
        return {device for held in self._held.values() for each in held.devices.values() for device in each}

    def _has(self, held: Holding) -> bool:
        return all(gpu_of(device) in self.uuids for each in held.devices.values() for device in each)

    def _write(self) -> None:
        gpus = [
            {"index": index, "uuid": gpu, "model": self._model, "pods": self._pods_on(gpu)}
            for index, gpu in enumerate(self.uuids)
        ]
        self.node.replace(gpus)
        record = {uid: asdict(held) for uid, held in self._held.items()}
        replace_file(self._checkpoint, json.dumps(record, indent=1))

    def _pods_on(self, gpu: str) -> list[dict[str, Any]]:
        return [
            {"namespace": held.namespace, "pod": held.pod, "container": container, "load": dict(held.load)}
            for held in self._held.values()
            for container, devices in held.devices.items()
            if any(gpu_of(device) == gpu for device in devices)
        ]


def gpu_of(device: str) -> str:
    """The UUID of a device's GPU."""
    return device.partition(_REPLICA)[0]


def _read(checkpoint: Path) -> dict[str, Holding]:
    try:
        record = json.loads(checkpoint.read_text(encoding="utf-8"))
        return {uid: Holding(**held) for uid, held in record.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # as at the first start: pods are given devices anew
