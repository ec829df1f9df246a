"""What a device id of the kubelet's means: the GPU or MIG instance, and the slot of one that is shared.

Device plugins write ids in several forms; each says by itself which one it is, so no mode has to be chosen:

    GPU-<uuid>                    a GPU
    MIG-<uuid>                    a MIG device: only the driver knows whose
    MIG-GPU-<uuid>/<gi>/<ci>      a MIG device, in the form before driver 470
    nvidia<N>[/gi<M>]             a GPU, or a MIG instance of it, by index, as on GKE
    <any of these>::<slot>        a replica under time-slicing or MPS
    <any of these>/vgpu<slot>     the same on GKE
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

# A MIG device's UUID → its GPU's UUID and its GPU instance's id there; None for one that is not known.
MigLookup = Callable[[str], "tuple[str, int] | None"]

_SLOT = re.compile(r"(?P<device>.+?)(?:::|/vgpu)(?P<slot>.*)")
_OLD_MIG = re.compile(r"MIG-(?P<gpu>GPU-[^/]+)/(?P<instance>\d+)/\d+")
_NAME = re.compile(r"nvidia(?P<index>\d+)(?:/gi(?P<instance>\d+))?")
_MIG, _GPU = "MIG-", "GPU-"


@dataclass(frozen=True)
class Place:
    """A GPU, by its UUID or index, or one of its MIG instances; `slot` is "" if it is not shared.

    `sure` is false for a MIG device that the driver does not know.
    """

    gpu: str | int
    instance: int | None = None
    slot: str = ""
    sure: bool = True


def place_of(device_id: str, migs: MigLookup) -> Place:
    """What the id means; an unknown form is taken for a GPU's UUID."""
    device, slot = device_id, ""
    if shared := _SLOT.fullmatch(device_id):
        device, slot = shared["device"], shared["slot"]
    if old := _OLD_MIG.fullmatch(device):
        return Place(old["gpu"], int(old["instance"]), slot)
    if name := _NAME.fullmatch(device):
        return Place(int(name["index"]), int(name["instance"]) if name["instance"] else None, slot)
    if not device.startswith(_MIG):
        return Place(device, None, slot)
    if found := migs(device):
        return Place(*found, slot)
    # As dcgm-exporter does without the driver's word: the GPU whose UUID it would be.
    return Place(_GPU + device.removeprefix(_MIG), None, slot, sure=False)
