"""One GPU of the machine, whole or cut into MIG instances: who it is, and a reading of all its fields.

A MIG instance has memory and profiling figures of its own, and shares its GPU's clocks, power, heat and
faults, which are repeated in its row, as DCGM does. Several compute instances of one GPU instance are one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuworkshop.exporter.backends.nvml.events import XidLog, XidWatch
from gpuworkshop.exporter.backends.nvml.gpm import Gpm
from gpuworkshop.exporter.backends.nvml.library import NEVER, Nvml, NvmlError
from gpuworkshop.exporter.backends.nvml.processes import GpuProcesses
from gpuworkshop.exporter.backends.nvml.readings import BOARD, ENGINES, MEMORY, Asked, Numbered, Source
from gpuworkshop.exporter.devices import Device, Instance, Reading
from gpuworkshop.exporter.fields import NOT_ON_MIG, Field
from gpuworkshop.exporter.processes import Usage

ON_MIG = "not_on_mig"

_MIG_NAME = re.compile(r"MIG (?:\d+c\.)?(?P<profile>\d+g\.\S+)")
_NO_INSTANCE = frozenset({"not_found", "invalid_argument"})


@dataclass(frozen=True)
class MigDevice:
    """A MIG device of the driver's: its UUID, and its GPU instance."""

    uuid: str
    instance: Instance


@dataclass(frozen=True)
class Absent:
    """Why fields have no value: field → reason."""

    device: Device
    reasons: Mapping[Field, str]


class Gpu:
    """A GPU with what it takes to read it. Raises NvmlError if it cannot be opened."""

    def __init__(self, nvml: Nvml, index: int, driver: str) -> None:
        self._nvml = nvml
        self.handle = nvml.call("nvmlDeviceGetHandleByIndex", index)
        self.device = Device(
            index=index,
            uuid=nvml.call("nvmlDeviceGetUUID", self.handle),
            model=nvml.call("nvmlDeviceGetName", self.handle),
            pci_bus_id=_bus_id(nvml.call("nvmlDeviceGetPciInfo", self.handle)),
            driver=driver,
        )
        self.cut, found = _migs(nvml, self.handle)
        self.migs = tuple(mig for mig, _ in found)
        self._board: list[Source] = [Numbered(nvml, self.handle)]
        self._board += [Asked(nvml, self.handle, call) for call in BOARD]
        self._parts = self._instances(found) if found else [(self.device, self._whole())]
        self._users = self._processes(found)

    def changed(self) -> bool:
        """Whether its MIG devices are others than they were."""
        cut, found = _migs(self._nvml, self.handle)
        return (cut, tuple(mig for mig, _ in found)) != (self.cut, self.migs)

    def read(self, xids: XidLog, watch: XidWatch) -> tuple[list[Reading], list[Absent]]:
        """A reading, or one for each instance, and what is missing in them.

        Raises NvmlError if the GPU or the driver is gone.
        """
        board = _told(self._board)
        readings, absent = [], []
        for device, sources in self._parts:
            told = {**board, **(dict.fromkeys(NOT_ON_MIG, ON_MIG) if self.cut else {}), **_told(sources)}
            instance = device.instance.id if device.instance else None
            told[Field.XID] = watch.refused(device.uuid) or float(xids.last(device.uuid, instance))
            values = {field: value for field, value in told.items() if not isinstance(value, str)}
            readings.append(Reading(device, values))
            reasons = {field: reason for field, reason in told.items() if isinstance(reason, str)}
            absent.append(Absent(device, reasons))
        return readings, absent

    def processes(self) -> list[Usage]:
        """The processes of the GPU, or of each instance."""
        return [users.read() for users in self._users]

    def close(self) -> None:
        """Free what its sources hold."""
        for source in (*self._board, *(source for _, sources in self._parts for source in sources)):
            source.close()

    def _whole(self) -> list[Source]:
        sources: list[Source] = [Asked(self._nvml, self.handle, MEMORY), Gpm(self._nvml, self.handle)]
        # A GPU in MIG mode without instances has memory, and engines that do not say.
        return sources + [Asked(self._nvml, self.handle, call) for call in ENGINES if not self.cut]

    def _instances(self, found: Sequence[tuple[MigDevice, Any]]) -> list[tuple[Device, list[Source]]]:
        parts: dict[Instance, list[Source]] = {}
        for mig, handle in found:
            if mig.instance not in parts:
                gpm = Gpm(self._nvml, self.handle, mig.instance.id)
                parts[mig.instance] = [Asked(self._nvml, handle, MEMORY), gpm]
        return [(replace(self.device, instance=instance), sources) for instance, sources in parts.items()]

    def _processes(self, found: Sequence[tuple[MigDevice, Any]]) -> list[GpuProcesses]:
        if not found:
            return [GpuProcesses(self._nvml, self.device, [self.handle])]
        handles: dict[Instance, list[Any]] = {}
        for mig, handle in found:
            handles.setdefault(mig.instance, []).append(handle)
        return [
            GpuProcesses(self._nvml, replace(self.device, instance=instance), each)
            for instance, each in handles.items()
        ]


def _told(sources: Sequence[Source]) -> dict[Field, float | str]:
    told: dict[Field, float | str] = {}
    for source in sources:
        told |= source.read()
    return told


def _bus_id(pci: Any) -> str:
    """As DCGM writes it: a domain of eight digits."""
    return f"{pci.domain:08X}:{pci.bus:02X}:{pci.device:02X}.0"


def _migs(nvml: Nvml, gpu: Any) -> tuple[bool, list[tuple[MigDevice, Any]]]:
    """Whether the GPU is in MIG mode, and its MIG devices with their handles."""
    try:
        current, _ = nvml.call("nvmlDeviceGetMigMode", gpu)
        if not current:
            return False, []
        places = nvml.call("nvmlDeviceGetMaxMigDeviceCount", gpu)
    except NvmlError as error:
        if error.cause in NEVER:
            return False, []
        raise
    found = []
    for place in range(places):
        try:
            handle = nvml.ask("nvmlDeviceGetMigDeviceHandleByIndex", gpu, place)
        except NvmlError as error:
            if error.cause in _NO_INSTANCE:
                continue
            nvml.count(error)
            raise
        found.append((_mig(nvml, gpu, handle), handle))
    return True, found


def _mig(nvml: Nvml, gpu: Any, handle: Any) -> MigDevice:
    name = _MIG_NAME.search(nvml.call("nvmlDeviceGetName", handle))
    profile = name["profile"] if name else _profile(nvml, gpu, handle)
    instance = Instance(profile, nvml.call("nvmlDeviceGetGpuInstanceId", handle))
    return MigDevice(nvml.call("nvmlDeviceGetUUID", handle), instance)


def _profile(nvml: Nvml, gpu: Any, handle: Any) -> str:
    """The profile's name by its size, if the driver does not tell it: memory in eighths of the GPU's."""
    size = nvml.call("nvmlDeviceGetAttributes", handle)
    total = nvml.call("nvmlDeviceGetMemoryInfo", gpu).total
    eighths = math.ceil(size.memorySizeMB * 2**20 / total * 8)
    return f"{size.gpuInstanceSliceCount}g.{round(eighths / 8 * math.ceil(total / 2**30))}gb"
