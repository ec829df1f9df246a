"""Who holds which device, from one answer of the kubelet's pod-resources API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpuworkshop.exporter.device_ids import MigLookup, Place, place_of
from gpuworkshop.exporter.devices import Device, Pod

# `gpu.shared` is what NVIDIA's device plugin calls time-sliced GPUs if told to rename them.
_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
_MIG_RESOURCES = "nvidia.com/mig-"


def no_migs(_: str) -> None:
    """No MIG device is known."""


@dataclass(frozen=True)
class Rules:
    """How to read an answer: the further resources that are GPUs, and the driver's word on MIG devices.

    With `sharing` a pod stands once for each slot of a shared GPU that it holds, else once for the GPU.
    """

    resources: Sequence[str] = ()
    sharing: bool = False
    migs: MigLookup = no_migs

    def is_gpu(self, resource: str) -> bool:
        """Whether devices of this resource are GPUs or parts of them."""
        return resource in _RESOURCES or resource.startswith(_MIG_RESOURCES) or resource in self.resources


class Holders:
    """The pods of every device. `unsure` is the number of MIG devices that the driver does not know."""

    def __init__(self, answer: Any, rules: Rules) -> None:
        found: dict[tuple[str | int, int | None], set[Pod]] = {}
        self.unsure = 0
        for place, pod in _held(answer, rules):
            self.unsure += not place.sure
            gpu = _bare(place.gpu)
            found.setdefault((gpu, place.instance), set()).add(pod)
            # Who holds an instance holds a part of its GPU, should that have a row of its own.
            found.setdefault((gpu, None), set()).add(pod)
        self._pods = {where: frozenset(pods) for where, pods in found.items()}

    def of(self, device: Device) -> Sequence[Pod]:
        """The pods that hold the device, always in the same order: the kubelet's own changes."""
        instance = device.instance.id if device.instance else None
        by_uuid, by_index = (
            self._pods.get((gpu, instance), frozenset()) for gpu in (_bare(device.uuid), device.index)
        )
        return sorted(by_uuid | by_index, key=_order)


def _bare(gpu: str | int) -> str | int:
    """A GPU's UUID without its prefix, which device plugins may leave out."""
    return gpu.removeprefix("GPU-") if isinstance(gpu, str) else gpu


def _order(pod: Pod) -> tuple[str, ...]:
    return pod.namespace, pod.pod, pod.container, pod.vgpu.rjust(8)


def _held(answer: Any, rules: Rules) -> Iterator[tuple[Place, Pod]]:
    for pod in answer.pod_resources:
        for container in pod.containers:
            for devices in container.devices:
                if rules.is_gpu(devices.resource_name):
                    for device_id in devices.device_ids:
                        place = place_of(device_id, rules.migs)
                        vgpu = place.slot if rules.sharing else ""
                        yield place, Pod(pod.namespace, pod.name, container.name, vgpu)
