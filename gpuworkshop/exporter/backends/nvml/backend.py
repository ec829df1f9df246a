"""The machine's own GPUs as a backend.

A GPU that is lost, or a driver that is gone, takes nothing else along: its rows are absent, with the reason,
and the library is initialised anew, after 1 s, then 2, 4 … 60 s, until everything is there again. The same
finds a GPU that returns. MIG devices that come and go are looked for every ten seconds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence

from gpuworkshop.exporter.backends.nvml.device import Absent, Gpu
from gpuworkshop.exporter.backends.nvml.events import XidLog, XidWatch
from gpuworkshop.exporter.backends.nvml.library import Nvml, NvmlError, load, no_gpu, unusable
from gpuworkshop.exporter.devices import Device, Family, Pod, Reading
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.processes import Usage

log = logging.getLogger(__name__)

LOOK_S = 10.0
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 60.0

Labels = list[tuple[str, str]]


class NvmlBackend:
    """A `devices.Backend` of the GPUs that `nvml`, which is initialised, knows; a context manager.

    As a `devices.PodMapping` it knows no pods: a GPU does not say who holds it. `clock` tells monotonic
    seconds. Raises ExporterError if there is no GPU to read.
    """

    def __init__(self, nvml: Nvml, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._nvml = nvml
        self._clock = clock
        self._xids = XidLog()
        self._watch = XidWatch(nvml, self._xids)
        self._gpus: list[Gpu] = []
        self._known: dict[str, Device] = {}
        self._faults: dict[Device, str] = {}
        self._absent: list[Absent] = []
        self._migs: Mapping[str, tuple[str, int]] = {}
        self._wait_s = _FIRST_WAIT_S
        self._due = clock() + LOOK_S
        try:
            self._find()
        except NvmlError as error:
            raise unusable(error) from error
        if not self._gpus and not self._faults:
            raise no_gpu()

    def __enter__(self) -> NvmlBackend:
        return self

    def __exit__(self, *_: object) -> None:
        # The driver takes back the rest when the process ends; asking it could hang.
        self._watch.stop()

    def read(self, at: float) -> list[Reading]:  # noqa: ARG002 - NVML knows only the present
        """Readings of every GPU and MIG instance that can be read now."""
        self._keep_up()
        readings: list[Reading] = []
        self._absent = [Absent(device, dict.fromkeys(Field, why)) for device, why in self._faults.items()]
        for gpu in list(self._gpus):
            try:
                read, absent = gpu.read(self._xids, self._watch)
            except NvmlError as error:
                self._lose(gpu, error)
                continue
            readings += read
            self._absent += absent
        if not self._faults:
            self._wait_s = _FIRST_WAIT_S
        return readings

    def processes(self) -> list[Usage]:
        """The processes of every GPU and MIG instance that could be read."""
        return [usage for gpu in self._gpus for usage in gpu.processes()]

    def pods(self, _: Device) -> Sequence[Pod]:
        """None: who holds a GPU is for the kubelet to say."""
        return ()

    def mig_parent(self, uuid: str) -> tuple[str, int] | None:
        """The GPU and the GPU instance of a MIG device; None if there is no such one. For any thread."""
        return self._migs.get(uuid)

    def families(self) -> list[Family]:
        """Which GPUs answer, what they do not tell and why, the XIDs, and the errors of calls."""
        found = [
            Family("gpuworkshop_gpu_up", "gauge", "1 if the GPU can be read.", self._up()),
            Family("gpuworkshop_field_unavailable", "gauge", "1 for a field without a value now.",
                   [(labels, 1.0) for labels in self._unavailable()]),
            *self._xid_families(),
        ]  # fmt: skip
        return [family for family in found if family.samples] + self._nvml.families()

    def _find(self) -> None:
        """Open every GPU there is; one that cannot be opened is a fault."""
        failed: dict[int, str] = {}
        driver = self._nvml.call("nvmlSystemGetDriverVersion")
        for index in range(self._nvml.call("nvmlDeviceGetCount")):
            try:
                self._gpus.append(Gpu(self._nvml, index, driver))
            except NvmlError as error:
                failed[index] = error.cause
                log.warning("GPU %d cannot be read: %s", index, error)
        here = {gpu.device.uuid: gpu.device for gpu in self._gpus}
        for device in self._faults:
            if device.uuid in here:
                log.info("GPU %d (%s) can be read again", device.index, device.uuid)
        self._known |= here
        gone = [device for uuid, device in self._known.items() if uuid not in here]
        self._faults = {device: failed.pop(device.index, "gpu_not_found") for device in gone}
        self._faults |= {Device(index, "", "", "", driver): cause for index, cause in failed.items()}
        self._set_migs()
        self._watch.start({gpu.device.uuid: gpu.handle for gpu in self._gpus})

    def _set_migs(self) -> None:
        self._migs = {mig.uuid: (gpu.device.uuid, mig.instance.id) for gpu in self._gpus for mig in gpu.migs}

    def _keep_up(self) -> None:
        if self._clock() < self._due:
            return
        if self._faults:
            self._start_anew()
        else:
            self._look()
        self._due = self._clock() + (self._wait_s if self._faults else LOOK_S)

    def _lose(self, gpu: Gpu, error: NvmlError) -> None:
        log.warning("GPU %d (%s) is lost: %s", gpu.device.index, gpu.device.uuid, error)
        self._gpus.remove(gpu)
        gpu.close()
        self._faults[gpu.device] = error.cause
        self._absent.append(Absent(gpu.device, dict.fromkeys(Field, error.cause)))
        self._due = self._clock() + self._wait_s

    def _start_anew(self) -> None:
        """Initialise the library again, which alone finds a GPU that has returned."""
        self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)
        if not self._watch.stop():
            log.warning("the driver does not let go of the wait for XIDs")
            return
        for gpu in self._gpus:
            gpu.close()
        self._gpus = []
        try:
            # Refused if it is the very thing that is gone.
            self._nvml.ask("nvmlShutdown")
        except NvmlError as error:
            log.debug("%s", error)
        try:
            self._nvml.call("nvmlInit")
            self._find()
        except NvmlError as error:
            self._faults = dict.fromkeys([*self._known.values(), *self._faults], error.cause)

    def _look(self) -> None:
        """Take up MIG devices that have come or gone."""
        for place, gpu in enumerate(self._gpus):
            try:
                if gpu.changed():
                    new = Gpu(self._nvml, gpu.device.index, gpu.device.driver)
                    gpu.close()
                    self._gpus[place] = new
            except NvmlError as error:
                # A GPU that is lost says so in its reading as well, which deals with it.
                log.warning("GPU %d cannot be looked at: %s", gpu.device.index, error)
        self._set_migs()

    def _up(self) -> list[tuple[Labels, float]]:
        found = {gpu.device: 1.0 for gpu in self._gpus} | dict.fromkeys(self._faults, 0.0)
        return [(device.identity, up) for device, up in found.items()]

    def _unavailable(self) -> list[Labels]:
        return [
            [("field", str(field)), *absent.device.identity, ("reason", reason)]
            for absent in self._absent
            for field, reason in absent.reasons.items()
        ]

    def _xid_families(self) -> list[Family]:
        counts: list[tuple[Labels, float]] = []
        times: list[tuple[Labels, float]] = []
        for uuid, xid, count, seen in self._xids.totals():
            labels = [*self._known[uuid].identity, ("xid", str(xid))]
            counts.append((labels, float(count)))
            times.append((labels, seen))
        return [
            Family("gpuworkshop_xid_errors_total", "counter", "XIDs since the exporter started.", counts),
            Family("gpuworkshop_xid_last_timestamp_seconds", "gauge", "When the XID was last seen.", times),
        ]


def open_gpus() -> NvmlBackend:
    """The GPUs of this machine. Raises ExporterError, which says what to do, if there are none to read."""
    return NvmlBackend(load())
