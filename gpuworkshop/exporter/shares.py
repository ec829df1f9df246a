"""Each pod's share of each device, from reading to reading: gauges, counters, and what no pod explains.

A backend around another one, so that all is done by the thread that reads, and a scrape finds it made. The
names are our own, in base units: sums over DCGM's names stay what they are. The rest stands under names of
its own too, since Prometheus gives a series without a `pod` label that of the exporter's own pod.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from gpuworkshop.exporter.attribution import Share, activity, grouped, rest, rests, share
from gpuworkshop.exporter.cgroups import NO_POD, Processes
from gpuworkshop.exporter.devices import Backend, Device, Family, Pod, Reading
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.pod_directory import PodDirectory
from gpuworkshop.exporter.processes import (
    DEVICE_FIELDS,
    Activity,
    Process,
    ProcessSource,
    Usage,
    Window,
)

# Drivers take samples of processes about once a second; an older figure is not the present one.
HELD_S = 2.5
# How long the seconds of a pod without processes are still told.
COUNTED_S = 300.0

Labels = Sequence[tuple[str, str]]
Label = Callable[[Device, "Pod | None"], Labels]

_ABOUT = {
    Activity.SM: "time in which kernels ran",
    Activity.MEMORY: "time in which device memory was read or written",
    Activity.ENCODER: "time in which the video encoder ran",
    Activity.DECODER: "time in which the video decoder ran",
}
_ATTRIBUTED, _UNKNOWN = "attributed", "pod_unknown"


class Source(Backend, ProcessSource, Protocol):
    """A backend that knows processes too."""


class Owners:
    """The pods of processes; `states` counts the processes of this reading by what was found."""

    def __init__(self, groups: Processes, directory: PodDirectory) -> None:
        self._groups = groups
        self._directory = directory
        self._found: dict[int, Pod | str] = {}
        self.states: Counter[str] = Counter()

    def of(self, usage: Usage, process: Process) -> Pod | None:
        """The process's pod; None if there is none, or none that is known."""
        if usage.owners is not None:
            found: Pod | str = usage.owners.get(process.pid, NO_POD)
        else:
            if process.pid not in self._found:
                self._found[process.pid] = self._look(process.pid)
            found = self._found[process.pid]
        self.states[_ATTRIBUTED if isinstance(found, Pod) else found] += 1
        return found if isinstance(found, Pod) else None

    def start(self) -> None:
        """A new reading begins."""
        self._groups.keep_only(set(self._found))
        self._found, self.states = {}, Counter()

    def _look(self, pid: int) -> Pod | str:
        group = self._groups.group(pid)
        if isinstance(group, str):
            return group
        return self._directory.of_process(group.uid, group.container_id) or _UNKNOWN


class Meter:
    """The shares of one device: `shares` and `activities` of now, `seconds` of all time (None: the rest)."""

    def __init__(self) -> None:
        self.shares: dict[Pod, Share] = {}
        self.activities: dict[Pod, dict[Activity, float]] = {}
        self.rest: Share | None = None
        self.rests: dict[Activity, float] = {}
        self.seconds: dict[Pod | None, float] = {}
        self.reasons: Mapping[str, str] = {}
        self._seen: dict[Pod, float] = {}
        self._sampled: float | None = None
        self._taken: float | None = None

    def take(
        self, usage: Usage, values: Mapping[Field, float], owner: Callable[[Process], Pod | None], now: float
    ) -> None:
        """Take up what the processes used until `now` (monotonic seconds); `values` are the device's own."""
        self.reasons = usage.reasons
        groups = grouped(usage.processes or (), owner)
        self.shares = {pod: share(processes) for pod, processes in groups.items() if pod}
        self.rest = self._rest(usage, groups.get(None, []), values)
        self._seen |= dict.fromkeys(self.shares, now)
        self._sample(_window(usage, values, now, self._taken), groups, values, now)
        self._taken = now
        self._forget(now)

    def _rest(self, usage: Usage, nobodys: Sequence[Process], values: Mapping[Field, float]) -> Share | None:
        if usage.processes is None:
            return None
        held = [each.memory_bytes for each in self.shares.values()]
        known = [each for each in held if each is not None]
        whole = values.get(Field.FB_USED)
        told = whole is not None and len(known) == len(held)
        return Share(len(nobodys), rest(whole, known) if whole is not None and told else None)

    def _sample(
        self,
        window: Window | None,
        groups: Mapping[Pod | None, Sequence[Process]],
        values: Mapping[Field, float],
        now: float,
    ) -> None:
        if window is None:
            # No new sample yet: the last ones stand for a while, of pods that are still there.
            fresh = self._sampled is not None and now - self._sampled <= HELD_S
            self.activities = {
                pod: each for pod, each in self.activities.items() if fresh and pod in self.shares
            }
            self.rests = self.rests if fresh else {}
            return
        self._sampled = now
        self.activities = {pod: activity(each, window) for pod, each in groups.items() if pod}
        whole = {kind: values[field] for kind, field in DEVICE_FIELDS.items() if field in values}
        self.rests = rests({**whole, **window.device}, list(self.activities.values()))
        for pod, each in self.activities.items():
            self._count(pod, each[Activity.SM] * window.seconds)
        if Activity.SM in self.rests:
            self._count(None, self.rests[Activity.SM] * window.seconds)

    def _count(self, pod: Pod | None, seconds: float) -> None:
        self.seconds[pod] = self.seconds.get(pod, 0.0) + seconds

    def _forget(self, now: float) -> None:
        gone = [pod for pod, seen in self._seen.items() if now - seen > COUNTED_S]
        for pod in gone:
            del self._seen[pod]
            self.seconds.pop(pod, None)


class WithShares:
    """A backend that tells pods' shares too; `label` gives a series' labels, `clock` monotonic seconds."""

    def __init__(
        self,
        backend: Source,
        owners: Owners,
        directory: PodDirectory,
        label: Label,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend, self._owners, self._directory, self._label = backend, owners, directory, label
        self._clock = clock
        self._meters: dict[Device, Meter] = {}

    def read(self, at: float) -> Sequence[Reading]:
        """The backend's readings; the shares are brought up to date."""
        readings = self._backend.read(at)
        values = {reading.device: reading.values for reading in readings}
        self._owners.start()
        meters = {}
        for usage in self._backend.processes():
            meter = meters[usage.device] = self._meters.get(usage.device) or Meter()
            owner = lambda process, usage=usage: self._owners.of(usage, process)  # noqa: E731
            meter.take(usage, values.get(usage.device, {}), owner, self._clock())
        self._meters = meters
        return readings

    def families(self) -> list[Family]:
        """The backend's families, then the shares."""
        rows = _Rows(self._directory, self._label)
        for device, meter in self._meters.items():
            rows.add(device, meter)
        states = [([("state", state)], float(count)) for state, count in sorted(self._owners.states.items())]
        about = "Processes on the GPUs, by whether a pod was found."
        found = [Family("gpuworkshop_share_processes", "gauge", about, states)] if states else []
        return [*self._backend.families(), *rows.families(), *found]


class _Rows:
    """The samples of each family, collected device by device."""

    def __init__(self, directory: PodDirectory, label: Label) -> None:
        self._directory, self._label = directory, label
        self._samples: dict[tuple[str, str, str], list[tuple[Labels, float]]] = {}

    def add(self, device: Device, meter: Meter) -> None:
        """The rows of a device."""
        for pod in (*meter.shares, *(pod for pod in meter.seconds if pod and pod not in meter.shares)):
            if shown := self._directory.shown(pod):
                # A container that is not known yet is a label that is absent, not empty.
                labels = [pair for pair in self._label(device, shown) if pair[1]]
                self._pod(labels, meter.shares.get(pod), meter.activities.get(pod, {}))
                seconds = meter.seconds.get(pod)
                self._put("pod_gpu_sm_active_seconds_total", _SECONDS, labels, seconds, "counter")
        own = self._label(device, None)
        self._rest(own, meter)
        for figure, reason in meter.reasons.items():
            about = "1 for a figure of processes that the driver does not tell."
            where = [("figure", figure), *own, ("reason", reason)]
            self._put("gpuworkshop_share_unavailable", about, where, 1.0)

    def families(self) -> list[Family]:
        """One family for each name."""
        return [
            Family(name, kind, about, samples, momentary=True)
            for (name, kind, about), samples in self._samples.items()
        ]

    def _pod(self, labels: Labels, share: Share | None, active: Mapping[Activity, float]) -> None:
        for kind, ratio in active.items():
            self._put(f"pod_gpu_{kind}_ratio", f"Share of {_ABOUT[kind]} for the pod.", labels, ratio)
        if share:
            about = "Device memory that the pod's processes hold."
            self._put("pod_gpu_memory_used_bytes", about, labels, share.memory_bytes)
            self._put("pod_gpu_processes", "Processes of the pod on the GPU.", labels, share.processes)

    def _rest(self, labels: Labels, meter: Meter) -> None:
        for kind, ratio in meter.rests.items():
            about = f"Share of {_ABOUT[kind]}, less those of all pods."
            self._put(f"gpu_unattributed_{kind}_ratio", about, labels, ratio)
        seconds = meter.seconds.get(None)
        self._put("gpu_unattributed_sm_active_seconds_total", _SECONDS, labels, seconds, "counter")
        if meter.rest:
            about = "Device memory in use that no pod's processes hold."
            self._put("gpu_unattributed_memory_used_bytes", about, labels, meter.rest.memory_bytes)
            about = "Processes on the GPU of which no pod is known."
            self._put("gpu_unattributed_processes", about, labels, meter.rest.processes)

    def _put(self, name: str, about: str, labels: Labels, value: float | None, kind: str = "gauge") -> None:
        if value is not None:
            self._samples.setdefault((name, kind, about), []).append((labels, float(value)))


_SECONDS = "Time in which kernels ran, in seconds since the exporter started."


def _window(usage: Usage, values: Mapping[Field, float], now: float, before: float | None) -> Window | None:
    """The samples; where there are none, and the device says that it was idle, the processes were so too."""
    if usage.processes is None:  # whose the samples are is not known, nor that they are nobody's
        return None
    if usage.window or Activity.SM in usage.reasons or before is None:
        return usage.window
    idle = all(values.get(field, 0.0) == 0 for field in DEVICE_FIELDS.values())
    return Window(now - before, {}) if idle and Field.GPU_UTIL in values else None
