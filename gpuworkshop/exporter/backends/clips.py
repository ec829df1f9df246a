"""Cuts the recorded trace into clips, one for each load, by the trace's own events and edges.

A process is resident while the recording lists it, and its load is that of its role's last start before
it came. A run is a stretch in which GPU_UTIL shows work. A clip of a load starts with the last sample
before such a run, so that it holds the onset, and ends with the run's last full sample. The clip of the
pauses in between goes from there to the next onset, so that one flows into the other without a jump.

Asked beyond its end a clip plays its last seconds backwards and forwards, for ever: no jump either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby, pairwise

from gpuworkshop.errors import TraceError
from gpuworkshop.exporter import trace as traces
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.trace import COLUMN, Row, Trace

_POWER, _UTIL = COLUMN[Field.POWER], COLUMN[Field.GPU_UTIL]
_ENGINE = COLUMN[Field.GR_ENGINE]
_TENSOR, _FP32 = COLUMN[Field.TENSOR], COLUMN[Field.FP32]

_WORKING = 0.05  # GPU_UTIL above this is work; the least load recorded, training, shows 0.34 and more
_FULL = 0.9  # of a run's usual activity; less, and the load ended within the sample
_BOTH_PIPES = 0.2  # tensor and fp32 pipes above this at once: both pods of the recording have the GPU
_SETTLED_S = 15.0  # the end of a run that is looped; every load's onset is over by then
_PAUSE_LOOP_S = 10.0  # the same of a pause: power, clock and temperature have come down


class Clip:
    """A stretch of the recording, read at any number of seconds after its start.

    Beyond its `length_s` it goes back and forth over its last `loop_s` seconds.
    """

    def __init__(self, rows: Sequence[Row], step_s: float, loop_s: float) -> None:
        self._rows = rows
        self._step_s = step_s
        self.loop_s = loop_s
        self.length_s = (len(rows) - 1) * step_s
        joules = ((a[_POWER] + b[_POWER]) / 2 * step_s for a, b in pairwise(rows))
        self._joules = list(accumulate(joules, initial=0.0))

    def at(self, elapsed_s: float) -> Row:
        """The row at that time, interpolated between two samples."""
        place, share = self._place(self._fold(elapsed_s))
        if not share:
            return self._rows[place]
        return tuple(
            [a + (b - a) * share for a, b in zip(self._rows[place], self._rows[place + 1], strict=True)]
        )

    def joules(self, elapsed_s: float) -> float:
        """The energy from the clip's start to then: the exact integral of the power that `at` gives."""
        if elapsed_s <= self.length_s:
            return self._integral(max(0.0, elapsed_s))
        whole = self._integral(self.length_s)
        turned = self._integral(self.length_s - self.loop_s)
        round_trips, rest = divmod(elapsed_s - self.length_s, 2 * self.loop_s)
        energy = whole + round_trips * 2 * (whole - turned)
        folded = self._integral(self._fold(elapsed_s))
        return energy + (whole - folded if rest <= self.loop_s else whole - turned + folded - turned)

    def _fold(self, elapsed_s: float) -> float:
        if elapsed_s <= self.length_s:
            return max(0.0, elapsed_s)
        beyond = (elapsed_s - self.length_s) % (2 * self.loop_s)
        return self.length_s - (beyond if beyond <= self.loop_s else 2 * self.loop_s - beyond)

    def _place(self, inside_s: float) -> tuple[int, float]:
        place, share = divmod(inside_s / self._step_s, 1)
        return int(place), share

    def _integral(self, inside_s: float) -> float:
        place, share = self._place(inside_s)
        if not share:
            return self._joules[place]
        start, end = self._rows[place][_POWER], self._rows[place + 1][_POWER]
        return self._joules[place] + (start + (end - start) * share / 2) * share * self._step_s


@dataclass(frozen=True)
class Recorded:
    """What was recorded of one load: the clip of its work, that of a pause after it, and its memory.

    `memory_bytes` is what its process holds above the idle GPU. `pause` is None where the process
    ended with its work.
    """

    work: Clip
    pause: Clip | None
    memory_bytes: float


@dataclass(frozen=True)
class Library:
    """All clips of a recording. `pair` is two pods at work at once, `shared` one cycle of their dance."""

    idle: Clip
    loads: dict[str, Recorded]
    pair: Clip
    pair_loads: frozenset[str]
    shared: Recorded
    shared_cycle_s: float


@cache
def library() -> Library:
    """The clips of the package's own trace; cut once. Raises TraceError if it lacks a load."""
    return cut(traces.recorded())


def cut(trace: Trace) -> Library:
    """Cut a recording. Raises TraceError if it lacks the idle stretch, a wave or a shared stretch."""
    resident = _resident_loads(trace)
    loads = {}
    for load in {load for alone in resident if len(alone) == 1 for load in alone}:
        loads[load] = _cut_load(trace, resident, load)
    both = _runs(trace, lambda n: len(resident[n]) == 2)
    pairs = _runs(
        trace, lambda n: trace.rows[n][_TENSOR] > _BOTH_PIPES and trace.rows[n][_FP32] > _BOTH_PIPES
    )
    if not both or len(pairs) < 2 or not any(recorded.pause for recorded in loads.values()):
        raise TraceError("the recording has no wave, or no two cycles of two loads that share the GPU")
    pair_loads = resident[both[0].start]
    roles = trace.residents[both[0].start]
    cycle_s = max(start.on_s + start.off_s for start in trace.starts if start.role in roles and start.off_s)
    first, idle = pairs[0], _cut_idle(trace, resident)
    dance = trace.rows[first.start - 1 : first.start + int(cycle_s / trace.step_s)]
    return Library(
        idle=idle,
        loads=loads,
        pair=_clip(trace, first.start + 1, first.stop - 2, None),
        pair_loads=pair_loads,
        shared=Recorded(Clip(dance, trace.step_s, cycle_s), None, _held(dance, idle)),
        shared_cycle_s=cycle_s,
    )


def _resident_loads(trace: Trace) -> list[frozenset[str]]:
    """The loads of the processes at each sample; a role's load holds for as long as its process stays."""
    current: dict[str, str] = {}
    found = []
    for place, roles in enumerate(trace.residents):
        for role in roles:
            if role not in current:
                starts = [s.load for s in trace.starts if s.role == role and trace.index(s.t) <= place]
                current[role] = starts[-1]
        current = {role: load for role, load in current.items() if role in roles}
        found.append(frozenset(current.values()))
    return found


def _runs(trace: Trace, wanted: Callable[[int], bool]) -> list[range]:
    """The stretches of samples for which `wanted` holds, in order."""
    stretches = (list(group) for keep, group in groupby(range(len(trace.rows)), wanted) if keep)
    return [range(stretch[0], stretch[-1] + 1) for stretch in stretches]


def _clip(trace: Trace, first: int, last: int, loop_s: float | None) -> Clip:
    rows = trace.rows[first : last + 1]
    whole_s = (len(rows) - 1) * trace.step_s
    return Clip(rows, trace.step_s, min(loop_s or whole_s, whole_s))


def _cut_load(trace: Trace, resident: list[frozenset[str]], load: str) -> Recorded:
    """The last run of that load alone which is long enough to have settled, and the pause after it."""
    alone = frozenset({load})
    works = _runs(trace, lambda n: resident[n] == alone and trace.rows[n][_UTIL] > _WORKING)
    settled = [run for run in works if (len(run) - 2) * trace.step_s > _SETTLED_S]
    if not settled:
        raise TraceError(f"the recording has no run of {load} that settles")
    run = settled[-1]
    last_full = _last_full(trace, run)
    pauses = _runs(trace, lambda n: resident[n] == alone and trace.rows[n][_UTIL] <= _WORKING)
    after = next((pause for pause in pauses if pause.start == run.stop), range(0))
    pause = None
    if len(after) * trace.step_s > _PAUSE_LOOP_S:
        pause = _clip(trace, last_full, after.stop - 1, _PAUSE_LOOP_S)
    held = _held(trace.rows[run.start : run.stop], _cut_idle(trace, resident))
    return Recorded(_clip(trace, run.start - 1, last_full, _SETTLED_S), pause, held)


def _last_full(trace: Trace, run: range) -> int:
    """The last sample that was at work for the whole of its quarter second, by utilisation and engine."""

    def full(place: int, column: int) -> bool:
        usual = sorted(trace.rows[n][column] for n in run)[len(run) // 2]
        return trace.rows[place][column] > _FULL * usual

    return next(n for n in reversed(run) if full(n, _UTIL) and full(n, _ENGINE))


def _cut_idle(trace: Trace, resident: list[frozenset[str]]) -> Clip:
    """The end of the first stretch without a process, when the clock has come down."""
    empty = _runs(trace, lambda n: not resident[n])
    if not empty:
        raise TraceError("the recording has no stretch without a process")
    last = empty[0].stop - 2
    return _clip(trace, last - int(_PAUSE_LOOP_S / trace.step_s), last, None)


def _held(rows: Sequence[Row], idle: Clip) -> float:
    used = COLUMN[Field.FB_USED]
    middle = sorted(row[used] for row in rows)[len(rows) // 2]
    return middle - idle.at(0.0)[used]
