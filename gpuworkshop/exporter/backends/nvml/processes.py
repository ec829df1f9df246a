"""The processes of one GPU, or of one MIG instance, by NVML: their memory, and what they did.

The driver takes a sample a few times a second and keeps some seconds of them. Asked for those after a time,
it answers with the mean of each process over all of them, so a process that it leaves out did nothing. It
answers `not_found` when there is no new sample; that is no figure, and no 0. MIG instances have no samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpuworkshop.exporter.backends.nvml.library import MISSING_FUNCTION, NEVER, Nvml, NvmlError
from gpuworkshop.exporter.devices import Device
from gpuworkshop.exporter.processes import MEMORY_USED, Activity, Process, Usage, Window

ON_MIG = "not_on_mig"
_FIRST_S = 1.0
# A sample may be told this much later than it was taken.
_LATE_S = 1.0

# With and without a version: bindings differ in which they have.
_LISTS = (
    ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses"),
    ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses"),
    ("nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses"),
)
_UTILIZATION, _SAMPLES = "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetSamples"
_NO_SAMPLES = ("not_found", "")  # the binding raises success for an empty answer
_GPU_UTILIZATION = 1  # NVML_GPU_UTILIZATION_SAMPLES

_PARTS = {
    Activity.SM: "smUtil",
    Activity.MEMORY: "memUtil",
    Activity.ENCODER: "encUtil",
    Activity.DECODER: "decUtil",
}


class GpuProcesses:
    """The processes of `device`. `handles` are its own, or those of the MIG devices that make it up.

    `wall` tells Unix time, by which the driver stamps its samples, and `clock` monotonic seconds.
    """

    def __init__(
        self,
        nvml: Nvml,
        device: Device,
        handles: Sequence[Any],
        *,
        wall: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._nvml, self._device, self._handles = nvml, device, handles
        self._wall, self._clock = wall, clock
        self._lists = list(_LISTS)
        self._since_us: int | None = None
        self._sampled: float | None = None
        self._unable = ON_MIG if device.instance else ""
        self._whole = True

    def read(self) -> Usage:
        """What is told now; what is not has a reason."""
        reasons: dict[str, str] = {}
        processes: list[Process] | None = None
        try:
            processes = self._processes()
        except NvmlError as error:
            reasons[MEMORY_USED] = error.cause
        window = None
        if not self._unable:
            try:
                window = self._window({process.pid for process in processes or ()})
            except NvmlError as error:
                self._unable = error.cause if error.cause in NEVER else ""
                reasons |= dict.fromkeys(Activity, error.cause)
        else:
            reasons |= dict.fromkeys(Activity, self._unable)
        return Usage(self._device, processes, window, reasons)

    def _processes(self) -> list[Process]:
        """Each process once: one that computes and draws is in two lists, with the same memory."""
        found: dict[int, float | None] = {}
        for names in list(self._lists):
            for process in self._listed(names):
                memory, before = process.usedGpuMemory, found.get(process.pid)
                known = [float(each) for each in (memory, before) if each is not None]
                found[int(process.pid)] = max(known, default=None)
        return [Process(pid, memory) for pid, memory in sorted(found.items())]

    def _listed(self, names: Sequence[str]) -> list[Any]:
        try:
            return [each for handle in self._handles for each in self._ask(names, handle)]
        except NvmlError as error:
            # Only processes that compute are on every GPU.
            if error.cause not in NEVER or names == _LISTS[0]:
                raise
            self._lists.remove((names[0], names[1]))
            return []

    def _ask(self, names: Sequence[str], handle: Any) -> Sequence[Any]:
        *others, last = names
        for name in others:
            try:
                found: Sequence[Any] = self._nvml.call(name, handle)
            except NvmlError as error:
                if error.cause != MISSING_FUNCTION:
                    raise
            else:
                return found
        listed: Sequence[Any] = self._nvml.call(last, handle)
        return listed

    def _window(self, pids: set[int]) -> Window | None:
        now, now_us = self._clock(), int(self._wall() * 1e6)
        since = self._since_us
        # After a clock that was set back, the last sample's time would hide all new ones.
        if since is None or since > now_us:
            since = now_us - int(_FIRST_S * 1e6)
        samples = [each for each in self._samples(since) if since < each.timeStamp <= now_us + 1e6]
        if not samples:
            # There was nothing up to now, so the next samples say nothing of this time.
            self._since_us = max(since, now_us - int(_LATE_S * 1e6))
            return None
        self._since_us = newest = max(int(each.timeStamp) for each in samples)
        seconds = (newest - since) / 1e6
        if self._sampled is not None:
            # A clock that was set forward makes no time.
            seconds = min(seconds, now - self._sampled + _LATE_S)
        self._sampled = now
        return Window(seconds, _ratios(samples, pids), self._device_mean(since, newest))

    def _samples(self, since_us: int) -> Sequence[Any]:
        try:
            found: Sequence[Any] = self._nvml.ask(_UTILIZATION, self._handles[0], since_us)
        except NvmlError as error:
            if error.cause in _NO_SAMPLES:
                return ()
            if error.cause not in NEVER:
                self._nvml.count(error)
            raise
        return found

    def _device_mean(self, since_us: int, newest_us: int) -> dict[Activity, float]:
        """What the GPU as a whole did in the same time, if it keeps samples of that."""
        if not self._whole:
            return {}
        try:
            _, samples = self._nvml.ask(_SAMPLES, self._handles[0], _GPU_UTILIZATION, since_us)
        except NvmlError as error:
            self._whole = error.cause not in NEVER
            return {}
        inside = [each.sampleValue.uiVal for each in samples if since_us < each.timeStamp <= newest_us]
        return {Activity.SM: _ratio(sum(inside) / len(inside))} if inside else {}


def _ratios(samples: Sequence[Any], pids: set[int]) -> Mapping[int, Mapping[Activity, float]]:
    """Of the processes that are listed; the driver remembers others, and ids that mean nothing."""
    newest = {int(each.pid): each for each in sorted(samples, key=lambda each: each.timeStamp)}
    return {
        pid: {kind: _ratio(getattr(sample, name)) for kind, name in _PARTS.items()}
        for pid, sample in newest.items()
        if pid in pids
    }


def _ratio(percent: float) -> float:
    return min(max(percent, 0.0), 100.0) / 100
