"""What single processes use of a device, as a backend tells it: the figures that pods' shares are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from gpuworkshop.exporter.devices import Device, Pod
from gpuworkshop.exporter.fields import Field


class Activity(StrEnum):
    """What a process can be seen doing: the share of time in which it did, from 0 to 1."""

    SM = "sm_active"
    MEMORY = "memory_active"
    ENCODER = "encoder_active"
    DECODER = "decoder_active"


# The device's own figure of the same.
DEVICE_FIELDS = {
    Activity.SM: Field.GPU_UTIL,
    Activity.MEMORY: Field.MEM_COPY_UTIL,
    Activity.ENCODER: Field.ENC_UTIL,
    Activity.DECODER: Field.DEC_UTIL,
}
MEMORY_USED = "memory_used"


@dataclass(frozen=True)
class Process:
    """A process with a context on the device; `memory_bytes` is None where the driver does not say."""

    pid: int
    memory_bytes: float | None


@dataclass(frozen=True)
class Window:
    """What the processes did in some stretch of time, `seconds` long, of which there are samples.

    A process that is not in `ratios` did nothing then. `device` has what the device did as a whole in the
    same time, where that is known.
    """

    seconds: float
    ratios: Mapping[int, Mapping[Activity, float]]
    device: Mapping[Activity, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """The processes of a device; None if they cannot be told.

    `window` is None if there are no samples that were not told before. `reasons` has, for each figure that
    cannot be had at all, why. `owners` has the pods of processes where the source knows them by itself:
    simulated processes are not to be found under any /proc.
    """

    device: Device
    processes: Sequence[Process] | None
    window: Window | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    owners: Mapping[int, Pod] | None = None


class ProcessSource(Protocol):
    """A backend that knows the processes of its devices."""

    def processes(self) -> Sequence[Usage]:
        """Of every device, at the time of the last reading; called by the thread that reads."""
