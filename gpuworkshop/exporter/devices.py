"""What a reading is about: the GPU or MIG instance, and the pods that it is given to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuworkshop.exporter.fields import Field


@dataclass(frozen=True)
class Instance:
    """A MIG GPU instance: its profile, such as `1g.18gb`, and its id on the parent."""

    profile: str
    id: int


@dataclass(frozen=True)
class Device:
    """A GPU, or one MIG instance of it (then `uuid` is the parent's, as DCGM has it)."""

    index: int
    uuid: str
    model: str
    pci_bus_id: str
    driver: str
    instance: Instance | None = None

    @property
    def identity(self) -> list[tuple[str, str]]:
        """The labels by which the exporter's own metrics tell it from others."""
        part = [("GPU_I_ID", str(self.instance.id))] if self.instance else []
        return [("gpu", str(self.index)), ("UUID", self.uuid), *part]


@dataclass(frozen=True)
class Pod:
    """One container of a pod that holds a GPU; `vgpu` is the slot of a shared GPU, if that is told.

    `uid` is the pod's, where it is known, and `labels` are those of its own that are shown, by names that
    Prometheus takes.
    """

    namespace: str
    pod: str
    container: str
    vgpu: str = ""
    uid: str = ""
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Reading:
    """What one device said at one time; a field that it cannot tell is missing from `values`."""

    device: Device
    values: Mapping[Field, float]


@dataclass(frozen=True)
class Family:
    """One of the exporter's own metric families, each sample a list of labels and a value.

    A `momentary` one tells what the devices did at the reading: it is not shown when that is stale.
    """

    name: str
    type: str
    help: str
    samples: Sequence[tuple[Sequence[tuple[str, str]], float]]
    momentary: bool = False


class Backend(Protocol):
    """Where readings come from: a trace that is replayed, or the machine's own GPUs."""

    def read(self, at: float) -> Sequence[Reading]:
        """Readings of every device at Unix time `at`; called by one thread only."""

    def families(self) -> Sequence[Family]:
        """What the backend has to say of itself."""


class PodMapping(Protocol):
    """Who holds a device."""

    def pods(self, device: Device) -> Sequence[Pod]:
        """The pods that share this device; none if nobody holds it or nobody knows."""
