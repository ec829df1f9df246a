"""Simulated GPUs as a backend: those of the GPU file, which is read again whenever it changes.

That is how loads are set at run time. A change that makes no sense leaves the last good state in force,
is logged once, and shows in `gpuworkshop_gpu_file_error`.

All is a function of absolute time but one thing: the energy counter. It must not step when a load
changes, so each change moves it by an offset that this process remembers.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuworkshop.errors import GpuFileError
from gpuworkshop.exporter.backends.simulated import SimulatedGpu
from gpuworkshop.exporter.devices import Device, Family, Pod, Reading
from gpuworkshop.exporter.fields import NOT_ON_MIG, Field
from gpuworkshop.exporter.gpus import GpuFile, GpuSpec
from gpuworkshop.exporter.processes import Usage

log = logging.getLogger(__name__)


class ReplayBackend:
    """The GPUs of a GPU file; both a `devices.Backend` and a `devices.PodMapping`.

    Raises GpuFileError if the file is wrong at the start; later it keeps the last good state.
    """

    def __init__(self, path: Path, hostname: str) -> None:
        self._file = GpuFile(path, hostname)
        self._gpus: dict[str, SimulatedGpu] = {}
        self._offsets: dict[str, float] = {}
        self._last: dict[str, float] = {}
        self._fault = ""
        self._span: tuple[float, float] | None = None
        self._readings: Sequence[Reading] = ()
        self._take(self._file.read(), at=None)

    def read(self, at: float) -> list[Reading]:
        """Readings of every GPU at Unix time `at`; looks first whether the file has changed."""
        if self._file.changed():
            self._reload(at)
        self._span = (self._span[1] if self._span else at, at)
        readings = []
        for gpu in self._gpus.values():
            joules = self._joules(gpu, at)
            readings += [Reading(r.device, {**r.values, Field.ENERGY: joules}) for r in gpu.read(at)]
        self._readings = readings
        return readings

    def processes(self) -> list[Usage]:
        """The simulated processes at the last reading, and what they did since the one before it."""
        span = self._span
        return [usage for gpu in self._gpus.values() for usage in gpu.processes(span)] if span else []

    def pods(self, device: Device) -> Sequence[Pod]:
        """The pods that the file gives this device to."""
        return self._gpus[device.uuid].pods.get(device, ())

    def families(self) -> list[Family]:
        """Which GPUs are simulated, what they do not tell, and whether the file could be read."""
        return [
            Family(
                "gpuworkshop_field_unavailable",
                "gauge",
                "1 for a field without a value now.",
                [sample for reading in self._readings for sample in _absent(reading)],
            ),
            Family(
                "gpuworkshop_simulated_info",
                "gauge",
                "What a simulated GPU plays.",
                [(_labels(gpu), 1.0) for gpu in self._gpus.values()],
            ),
            Family(
                "gpuworkshop_gpu_file_error",
                "gauge",
                "1 while the GPU file cannot be used and its last good state is in force.",
                [((), float(bool(self._fault)))],
            ),
        ]

    def _reload(self, at: float) -> None:
        try:
            self._take(self._file.read(), at)
        except GpuFileError as error:
            # Once for each fault: an editor may write the same broken file again and again.
            if str(error) != self._fault:
                log.warning("the last good state of the GPUs stays in force\n%s", error)
            self._fault = str(error)
        else:
            if self._fault:
                log.info("the GPU file can be read again")
            self._fault = ""

    def _take(self, specs: Sequence[GpuSpec], at: float | None) -> None:
        """Put a list of GPUs in force; one whose entry is unchanged goes on as it was."""
        gpus = {}
        for spec in specs:
            old = self._gpus.get(spec.uuid)
            gpus[spec.uuid] = old if old and old.spec == spec else SimulatedGpu(spec)
        for uuid, gpu in gpus.items():
            old = self._gpus.get(uuid)
            if at is None or old is gpu or uuid not in self._last:
                continue
            # One that was away for a while goes on from where its counter stood.
            reached = self._joules(old, at) if old else self._last[uuid]
            self._offsets[uuid] = reached - gpu.joules(at)
        self._gpus = gpus

    def _joules(self, gpu: SimulatedGpu, at: float) -> float:
        """The energy counter: no step where a load changes, and never less, even if the clock steps back."""
        joules = gpu.joules(at) + self._offsets.get(gpu.uuid, 0.0)
        self._last[gpu.uuid] = max(joules, self._last.get(gpu.uuid, joules))
        return self._last[gpu.uuid]


def _absent(reading: Reading) -> Iterator[tuple[Sequence[tuple[str, str]], float]]:
    for field in Field:
        if field not in reading.values:
            on_mig = reading.device.instance and field in NOT_ON_MIG
            reason = "not_on_mig" if on_mig else "not_in_the_trace"
            yield [("field", str(field)), *reading.device.identity, ("reason", reason)], 1.0


def _labels(gpu: SimulatedGpu) -> list[tuple[str, str]]:
    return [("gpu", str(gpu.spec.index)), ("UUID", gpu.uuid), ("note", gpu.note)]
