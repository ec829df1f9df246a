"""Divides what processes use of a device among the pods that they belong to.

The rule: a pod's share is the sum over its processes, per container. What no pod explains is the rest, the
device's own figure less all shares, so that shares and rest add up to it. What is not known of one of a
pod's processes is not known of the pod: its share has no figure then, never a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpuworkshop.exporter.devices import Pod
from gpuworkshop.exporter.processes import Activity, Process, Window

# The pod of a process; None if it has none that is known.
OwnerOf = Callable[[Process], "Pod | None"]


@dataclass(frozen=True)
class Share:
    """What one container of a pod, or all processes without a pod together, have of a device."""

    processes: int
    memory_bytes: float | None


def grouped(processes: Sequence[Process], owner_of: OwnerOf) -> dict[Pod | None, list[Process]]:
    """The processes of each pod; those without one under None."""
    found: dict[Pod | None, list[Process]] = {}
    for process in processes:
        found.setdefault(owner_of(process), []).append(process)
    return found


def share(processes: Sequence[Process]) -> Share:
    """The share of these processes: their memory only if each one's is known."""
    known = [process.memory_bytes for process in processes if process.memory_bytes is not None]
    return Share(len(processes), sum(known) if len(known) == len(processes) else None)


def activity(processes: Sequence[Process], window: Window) -> dict[Activity, float]:
    """What these processes did in the window, each figure 1 at most: several may run at the same time."""
    return {
        kind: min(1.0, sum(window.ratios.get(process.pid, {}).get(kind, 0.0) for process in processes))
        for kind in Activity
    }


def rest(whole: float, shares: Sequence[float]) -> float:
    """What no share explains. Shares may exceed the whole: they overlap, or were taken a moment apart."""
    return max(0.0, whole - sum(shares))


def rests(
    whole: Mapping[Activity, float], shares: Sequence[Mapping[Activity, float]]
) -> dict[Activity, float]:
    """The rest of each activity that is known of the device."""
    return {kind: rest(figure, [each[kind] for each in shares]) for kind, figure in whole.items()}
