"""One simulated GPU: the trace's values for its loads, scaled to its model, whole or cut into MIG instances.

The trace holds no errors, no retries, no video coding and no NVLink traffic: a simulated GPU has none of
these, and says 0. What was not recorded and is not so defined, such as reserved memory, is absent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuworkshop.exporter import models
from gpuworkshop.exporter import trace as traces
from gpuworkshop.exporter.backends import simulated_processes
from gpuworkshop.exporter.backends.clips import library
from gpuworkshop.exporter.backends.mix import Mix
from gpuworkshop.exporter.devices import Device, Instance, Pod, Reading
from gpuworkshop.exporter.fields import NOT_ON_MIG, Field
from gpuworkshop.exporter.gpus import GpuSpec, InstanceSpec
from gpuworkshop.exporter.processes import Usage
from gpuworkshop.exporter.trace import FIELDS

# What a simulated GPU never has.
_NEVER = dict.fromkeys(
    (
        Field.PCIE_REPLAY, Field.ENC_UTIL, Field.DEC_UTIL, Field.XID, Field.NVLINK, Field.VGPU_LICENSE,
        Field.ROWS_UNCORRECTABLE, Field.ROWS_CORRECTABLE, Field.ROW_REMAP_FAILED,
    ),
    0.0,
)  # fmt: skip

# What a GPU has once, whatever MIG instances it is cut into.
_WHOLE = (Field.POWER, Field.GPU_TEMP, Field.MEMORY_TEMP)
# What an instance has of the GPU's in proportion to its share.
_SHARED_RATES = (Field.PCIE_TX, Field.PCIE_RX)


class SimulatedGpu:
    """One GPU of the file, playing its loads. Readings are a function of time and the file alone."""

    def __init__(self, spec: GpuSpec) -> None:
        recorded = models.models()[traces.MODEL]
        self.spec = spec
        self.uuid = spec.uuid
        self._factors = spec.model.factors(recorded)
        self._unknown = spec.model.unknown(recorded)
        self._device = _device(spec)
        clips = library()
        if spec.instances:
            self._mixes = [Mix([pod.load for pod in instance.pods], clips) for instance in spec.instances]
        else:
            self._mixes = [Mix([pod.load for pod in spec.pods] or [spec.load], clips)]
        self._idle = Mix([], clips)
        self.pods: dict[Device, tuple[Pod, ...]] = self._holders()

    @property
    def note(self) -> str:
        """What is simulated, in words for whoever looks at the figures."""
        note = f"{traces.MODEL} trace"
        key = self.spec.model.key
        return note if key == traces.MODEL else f"{note} scaled to {key}"

    def joules(self, at: float) -> float:
        """The energy used since boot, as if the loads had never changed."""
        factor = self._factors[Field.ENERGY]
        if not self.spec.instances:
            return self._mixes[0].joules(at) * factor
        idle = self._idle.joules(at)
        shares = (self._share(instance) for instance in self.spec.instances)
        busy = (mix.joules(at) for mix in self._mixes)
        return (idle + sum(s * (b - idle) for s, b in zip(shares, busy, strict=True))) * factor

    def read(self, at: float) -> list[Reading]:
        """One reading, or one an instance. Energy is not in it: that is the backend's."""
        rows = [dict(zip(FIELDS, mix.at(at), strict=True)) for mix in self._mixes]
        if not self.spec.instances:
            capacity = float(self.spec.model.memory_bytes)
            return [Reading(self._device, self._scaled(rows[0], {Field.FB_CAPACITY: capacity}))]
        whole = self._whole(dict(zip(FIELDS, self._idle.at(at), strict=True)), rows)
        return [
            Reading(self._instance_device(instance), self._instance(instance, mix, row, whole))
            for instance, mix, row in zip(self.spec.instances, self._mixes, rows, strict=True)
        ]

    def processes(self, span: tuple[float, float]) -> list[Usage]:
        """Its processes, and what they did from one Unix time to another; of each instance, if it is cut."""
        factor = self._factors.get(Field.FB_USED, 1.0)
        return [
            simulated_processes.usage(device, mix, pods, factor, span)
            for (device, pods), mix in zip(self.pods.items(), self._mixes, strict=True)
        ]

    def _holders(self) -> dict[Device, tuple[Pod, ...]]:
        if not self.spec.instances:
            return {self._device: tuple(pod.pod for pod in self.spec.pods)}
        return {
            self._instance_device(instance): tuple(pod.pod for pod in instance.pods)
            for instance in self.spec.instances
        }

    def _scaled(self, row: Mapping[Field, float], more: Mapping[Field, float]) -> dict[Field, float]:
        """The row of this model: scaled, without what is unknown, with what a simulated GPU never has."""
        known = {
            field: value * self._factors.get(field, 1.0)
            for field, value in row.items()
            if field not in self._unknown and value == value  # NaN is not
        }
        return {**known, **_whole_mebibytes(known[Field.FB_USED], known[Field.FB_FREE]), **_NEVER, **more}

    def _whole(
        self, idle: Mapping[Field, float], rows: Sequence[Mapping[Field, float]]
    ) -> dict[Field, float]:
        """What the parent of MIG instances reads: idle and, for each, its share of what its load adds.

        No MIG was recorded; this is a model, as is every figure of a simulated instance.
        """
        shares = [self._share(instance) for instance in self.spec.instances]
        whole = {
            field: idle[field]
            + sum(s * (row[field] - idle[field]) for s, row in zip(shares, rows, strict=True))
            for field in _WHOLE
        }
        return {**whole, Field.SM_CLOCK: max(row[Field.SM_CLOCK] for row in rows)}

    def _instance(
        self, instance: InstanceSpec, mix: Mix, row: Mapping[Field, float], whole: Mapping[Field, float]
    ) -> dict[Field, float]:
        """What an instance reads: the parent's power, heat and clock, its own activity, memory and PCIe."""
        rates = {field: row[field] * self._share(instance) for field in _SHARED_RATES}
        capacity = self.spec.model.memory_bytes * instance.memory_share
        used = row[Field.FB_USED] - mix.memory_bytes
        used = (used * instance.memory_share + mix.memory_bytes) * self._factors[Field.FB_USED]
        values = self._scaled({**row, **rates, **whole}, {Field.FB_CAPACITY: capacity})
        values |= _whole_mebibytes(used, max(0.0, capacity - used))
        return {field: value for field, value in values.items() if field not in NOT_ON_MIG}

    def _share(self, instance: InstanceSpec) -> float:
        return instance.slices / self.spec.model.mig_slices

    def _instance_device(self, instance: InstanceSpec) -> Device:
        return _device(self.spec, Instance(instance.profile, instance.id))


def _whole_mebibytes(used: float, free: float) -> dict[Field, float]:
    """Both in whole MiB, as a driver gives memory away, and still as much together."""
    mib = 2.0**20
    total, taken = round((used + free) / mib), round(used / mib)
    return {Field.FB_USED: taken * mib, Field.FB_FREE: (total - taken) * mib}


def _device(spec: GpuSpec, instance: Instance | None = None) -> Device:
    return Device(
        index=spec.index,
        uuid=spec.uuid,
        model=spec.model.name,
        pci_bus_id=f"{spec.index // 32:08X}:{spec.index % 32 * 8 + 1:02X}:00.0",
        driver=traces.recorded().driver,
        instance=instance,
    )
