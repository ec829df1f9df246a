"""The processes of simulated GPUs: one for each container that the GPU file gives a load to.

They run nowhere, so no /proc has them: the file itself says whose they are. Each has the memory that was
recorded of its load. Of the GPU's activity each has its own part: that of its load if it has the GPU alone,
and where several are at work at once, the GPU's in proportion to what each would do alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuworkshop.exporter.backends.mix import Mix
from gpuworkshop.exporter.devices import Device, Pod
from gpuworkshop.exporter.processes import DEVICE_FIELDS, Activity, Process, Usage, Window

ON_MIG = "not_on_mig"
# A driver's samples are some 200 ms apart; more than these of one reading would change nothing.
_STEP_S, _MOST_STEPS = 0.2, 50
# No video coding was recorded: there every process did nothing.
_RECORDED = (Activity.SM, Activity.MEMORY)


def usage(
    device: Device, mix: Mix, pods: Sequence[Pod], memory_factor: float, span: tuple[float, float]
) -> Usage:
    """The processes of a device that plays `mix` for `pods`, from one Unix time to another."""
    owners = dict(enumerate(pods, start=1))
    # A load that never came to the GPU has no context there, and no process.
    resident = {pid: held for pid, held in enumerate(mix.memories(), start=1) if held}
    processes = [Process(pid, float(round(held * memory_factor))) for pid, held in resident.items()]
    if device.instance:
        return Usage(device, processes, None, dict.fromkeys(Activity, ON_MIG), owners)
    return Usage(device, processes, _window(mix, span), {}, owners)


def _window(mix: Mix, span: tuple[float, float]) -> Window | None:
    start, end = span
    if end <= start:
        return None
    steps = min(max(1, round((end - start) / _STEP_S)), _MOST_STEPS)
    times = [end - (end - start) * step / steps for step in range(steps)]
    sums = {
        kind: [sum(each) for each in zip(*(mix.busy(at, DEVICE_FIELDS[kind]) for at in times), strict=True)]
        for kind in _RECORDED
    }
    ratios: dict[int, dict[Activity, float]] = {}
    for kind, each in sums.items():
        for pid, total in enumerate(each, start=1):
            ratios.setdefault(pid, {})[kind] = total / steps
    return Window(end - start, ratios, {kind: sum(each) / steps for kind, each in sums.items()})
