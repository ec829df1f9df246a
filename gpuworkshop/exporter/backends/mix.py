"""The loads of one GPU played together: what it reads at any time, and the energy it has used by then.

A load is a cycle of phases on the absolute clock, each playing a clip; so everything is a function of
time alone, and a restart or a back-fill goes on where the last process was.

When several pods share a GPU they are time-sliced, and a device's counters show whoever has it:
- Two at work that were recorded together (bf16 and fp32 matmul): that recording plays.
- Other loads at work at once: the mean of their clips, as each has the GPU for its share of the time; the
  recorded pair agrees roughly (power within 1 %, tensor activity 37 % for a mean of 47 %). GPU_UTIL is
  their sum, 100 % at most: time-slicing leaves no pause while another process waits.
- One at work: its clip alone. None: the mean of their pauses.
Memory is always the idle GPU's and each process's own, paused or not.

Energy is the exact integral of that power since `BOOT`. The loads repeat together after the least common
multiple of their cycles, so a table of the energy at each change within one such round is all it takes.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from gpuworkshop.errors import GpuFileError
from gpuworkshop.exporter.backends.clips import Clip, Library
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.loads import Load
from gpuworkshop.exporter.trace import COLUMN, Row

# Every simulated GPU booted then: 2020-01-01T00:00:00Z.
BOOT = 1_577_836_800

_UTIL = COLUMN[Field.GPU_UTIL]
_USED, _FREE = COLUMN[Field.FB_USED], COLUMN[Field.FB_FREE]
_MOST_CHANGES = 200_000

# What the recording calls each kind of load.
_RECORDED = {
    "matmul": "matmul",
    "wave": "matmul",
    "training": "train",
    "memory-bound": "mem",
    "pcie-bound": "pcie",
    "fp32": "fp32",
}


@dataclass(frozen=True)
class _Phase:
    """`duration_ms` of a clip, from `lead_s` into it; `at_work` names the load that runs, if one does."""

    duration_ms: int
    clip: Clip
    lead_s: float = 0.0
    at_work: str = ""


@dataclass(frozen=True)
class _Part:
    """One load's cycle of phases."""

    phases: tuple[_Phase, ...]
    memory_bytes: float = 0.0

    @property
    def cycle_ms(self) -> int:
        return sum(phase.duration_ms for phase in self.phases)

    def locate(self, at: float) -> tuple[_Phase, float]:
        """The phase at Unix time `at`, and the seconds into its clip."""
        elapsed = at % (self.cycle_ms / 1000)
        for phase in self.phases[:-1]:
            if elapsed < phase.duration_ms / 1000:
                return phase, phase.lead_s + elapsed
            elapsed -= phase.duration_ms / 1000
        return self.phases[-1], self.phases[-1].lead_s + elapsed


class Mix:
    """The loads of one GPU, or of one MIG instance, played together.

    Raises GpuFileError when the waves have no common round that is short enough to add up.
    """

    def __init__(self, loads: Sequence[Load], library: Library) -> None:
        self._parts = tuple(_part(load, library) for load in loads) or (_part(Load("idle"), library),)
        at_work = {phase.at_work for part in self._parts for phase in part.phases}
        self._pair = _looped(library.pair, "pair") if library.pair_loads <= at_work else None
        self._pair_loads = library.pair_loads
        self.memory_bytes = sum(part.memory_bytes for part in self._parts)
        idle = library.idle.at(0.0)
        self._used, self._free = idle[_USED] + self.memory_bytes, idle[_FREE] - self.memory_bytes
        self._changes = self._round()
        self._joules = self._energy_table()
        self._before_boot = self._since_zero(BOOT)

    def at(self, at: float) -> list[float]:
        """The device's row (`trace.FIELDS`, base units) at Unix time `at`."""
        located = self._located(at)
        rows = [phase.clip.at(elapsed) for phase, elapsed in located]
        row = list(rows[0]) if len(rows) == 1 else _mean(rows)
        row[_USED], row[_FREE] = self._used, self._free
        return row

    def memories(self) -> list[float]:
        """What the process of each load holds of the memory, in bytes; 0 of a load that never came there."""
        return [part.memory_bytes for part in self._parts]

    def busy(self, at: float, field: Field) -> list[float]:
        """Each load's part of the device's figure of that activity at Unix time `at`; they add up to it.

        Loads that are at work at once have the device in proportion to what each would do alone.
        """
        located = [part.locate(at) for part in self._parts]
        working = any(phase.at_work for phase, _ in located)
        alone = [
            phase.clip.at(elapsed)[COLUMN[field]] if phase.at_work or not working else 0.0
            for phase, elapsed in located
        ]
        whole = self.at(at)[COLUMN[field]]
        return [each * whole / sum(alone) if each else 0.0 for each in alone]

    def joules(self, at: float) -> float:
        """The energy used from `BOOT` to Unix time `at`."""
        return self._since_zero(at) - self._before_boot

    def _located(self, at: float) -> list[tuple[_Phase, float]]:
        """The phases that make up the device's reading, each with the seconds into its clip."""
        located = [part.locate(at) for part in self._parts]
        working = [(phase, elapsed) for phase, elapsed in located if phase.at_work]
        if self._pair and {phase.at_work for phase, _ in working} == self._pair_loads:
            return [self._pair.locate(at)]
        return working or located

    def _round(self) -> list[float]:
        """The seconds, within one common round of all loads, at which any of them changes its phase."""
        cycles = [part.cycle_ms for part in (*self._parts, self._pair) if part]
        whole = math.lcm(*cycles)
        if sum(whole // cycle for cycle in cycles) > _MOST_CHANGES:
            seconds = ", ".join(f"{part.cycle_ms / 1000:g}" for part in self._parts)
            raise GpuFileError(
                f"the waves of pods that share a GPU have cycles of {seconds} s, which hardly ever meet",
                step="putting the loads of a GPU together",
                todo="choose round seconds for on and off, such as 20 and 20 beside 10 and 10",
            )
        changes = {0, whole}
        for part in self._parts:
            end = 0
            for phase in part.phases:
                end += phase.duration_ms
                changes.update(range(end, whole, part.cycle_ms))
        return [change / 1000 for change in sorted(changes)]

    def _energy_table(self) -> list[float]:
        """The energy from a round's start to each of its changes."""
        table = [0.0]
        for start, end in pairwise(self._changes):
            table.append(table[-1] + self._stretch(start, end))
        return table

    def _stretch(self, start: float, end: float) -> float:
        """The energy between two times with no change between them."""
        # Half a millisecond in, so that rounding can't find the phase before.
        located = self._located(start + 0.0005)
        energies = [
            phase.clip.joules(elapsed - 0.0005 + end - start) - phase.clip.joules(elapsed - 0.0005)
            for phase, elapsed in located
        ]
        return sum(energies) / len(energies)

    def _since_zero(self, at: float) -> float:
        rounds, rest = divmod(at, self._changes[-1])
        place = bisect_right(self._changes, rest) - 1
        return rounds * self._joules[-1] + self._joules[place] + self._stretch(self._changes[place], rest)


def _part(load: Load, library: Library) -> _Part:
    if load.kind == "idle":
        return _looped(library.idle, "")
    if load.kind == "shared":
        cycle_ms = round(library.shared_cycle_s * 1000)
        return _Part((_Phase(cycle_ms, library.shared.work, 0.0, "shared"),), library.shared.memory_bytes)
    name = _RECORDED[load.kind]
    recorded = library.loads[name]
    if load.kind != "wave":
        return replace(_looped(recorded.work, name), memory_bytes=recorded.memory_bytes)
    on = _Phase(round(load.on_s * 1000), recorded.work, 0.0, name)
    off = _Phase(round(load.off_s * 1000), recorded.pause or library.idle)
    return _Part((on, off), recorded.memory_bytes)


def _looped(clip: Clip, at_work: str) -> _Part:
    """A load that never changes: the settled end of its clip, back and forth."""
    return _Part((_Phase(round(2 * clip.loop_s * 1000), clip, clip.length_s, at_work),))


def _mean(rows: Sequence[Row]) -> list[float]:
    row = [sum(values) / len(rows) for values in zip(*rows, strict=True)]
    row[_UTIL] = min(1.0, sum(each[_UTIL] for each in rows))
    return row
