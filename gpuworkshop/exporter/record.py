"""`gpuworkshop record`: writes what a GPU of this machine does, for simulated GPUs to replay.

A line a sample, in the recording's own units, as the trace in the package was made; `pack` makes the compact
form of it. Samples are due on a fixed grid, so that the recording has no drift. Each line is complete when it
is written: whatever ends a recording early, what was recorded stays.
"""

from __future__ import annotations

import errno
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from gpuworkshop.errors import ExporterError
from gpuworkshop.exporter.backends.nvml.backend import NvmlBackend, open_gpus
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.processes import Activity, Process, Usage
from gpuworkshop.exporter.trace import SOURCES

_STEP = "recording"
# Of a load that does not pause by itself.
_FOR_EVER_S = 1e9


@dataclass
class Recording:
    """What is written of one GPU, by its index; `load` is what its processes are said to do."""

    backend: NvmlBackend
    gpu: int
    load: str
    _seen: set[int] = field(default_factory=set)

    def lines(self, t: float, at: float) -> list[dict[str, Any]]:
        """An event for each new process, then the sample at `t` seconds, which is Unix time `at`."""
        values = self._values(at)
        usage = next((u for u in self.backend.processes() if u.device.index == self.gpu), None)
        processes = list((usage and usage.processes) or ())
        new = [process for process in processes if process.pid not in self._seen]
        self._seen |= {process.pid for process in new}
        events = [
            {"t": round(t, 3), "event": ["start", _role(process), self.load, _FOR_EVER_S, 0, 0]}
            for process in new
        ]
        return [*events, {"t": round(t, 3), **values, **_processes(processes, usage)}]

    def _values(self, at: float) -> dict[str, float | None]:
        """A column a quantity; null for what the GPU does not tell, or all of it while it is lost."""
        readings = [each for each in self.backend.read(at) if each.device.index == self.gpu]
        whole = [each for each in readings if each.device.instance is None]
        values: Mapping[Field, float] = whole[0].values if whole else {}
        columns = {name: _scaled(values.get(each), factor) for each, (name, factor) in SOURCES.items()}
        return {**columns, "energy_mj": _scaled(values.get(Field.ENERGY), 1e-3)}


class _File:
    """The recording's file; a line that the disk does not take in full is taken back."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("xb", buffering=0)
        except FileExistsError as error:
            raise _bad(f"{path} is there already", "give another file with --out") from error
        except OSError as error:
            raise _bad(f"{path} cannot be written: {error.strerror}", "give another file") from error
        self._end = 0

    def write(self, line: Mapping[str, Any]) -> None:
        data = json.dumps(line, separators=(",", ":")).encode() + b"\n"
        try:
            self._write(data)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), self._end)
            seen = f"{self._path} takes no more: {error.strerror}"
            raise _bad(seen, "make room on the disk; what was recorded until now is in the file") from error
        self._end += len(data)

    def _write(self, data: bytes) -> None:
        if self._file.write(data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        self._file.close()
        if not self._end:
            self._path.unlink()


def write(
    recording: Recording,
    path: Path,
    steps: int,
    step_s: float,
    tick: Callable[[int], object],
    *,
    wall: Callable[[], float] = time.time,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> int:
    """Write `steps` samples, `step_s` seconds apart, and say `tick(1)` after each; how many were written.

    Ctrl-C ends it early. A reading that takes longer than a step leaves out the samples that it missed.
    Raises ExporterError when the file takes no more.
    """
    file, written = _File(path), 0
    begun = clock()
    try:
        place = 0
        while place < steps:
            sleep(max(0.0, begun + place * step_s - clock()))
            for line in recording.lines(place * step_s, wall()):
                file.write(line)
            written += 1
            following = max(place + 1, math.ceil((clock() - begun) / step_s - 1e-9))
            tick(min(following, steps) - place)
            place = following
    except KeyboardInterrupt:
        click.echo(f"\nstopped after {written} samples", err=True)
    finally:
        file.close()
    return written


@click.command()
@click.option("--gpu", type=click.IntRange(0), default=0, show_default=True, help="The GPU's index.")
@click.option(
    "--duration",
    type=click.FloatRange(1, 86_400),
    default=60,
    show_default=True,
    metavar="S",
    help="Seconds.",
)
@click.option(
    "--interval",
    type=click.IntRange(100, 60_000),
    default=250,
    show_default=True,
    metavar="MS",
    help="Milliseconds from one sample to the next.",
)
@click.option(
    "--load", default="unknown", show_default=True, help="What runs on it, in a word such as train."
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="trace.jsonl",
    show_default=True,
    help="A file that is not there yet.",
)
def record(gpu: int, duration: float, interval: int, load: str, out: Path) -> None:
    """Record what a GPU of this machine does, as a trace that simulated GPUs can replay."""
    steps = max(2, round(duration * 1000 / interval))
    with open_gpus() as backend:
        known = {reading.device.index for reading in backend.read(time.time())}
        if gpu not in known:
            raise _bad(f"there is no GPU {gpu} to read", f"the GPUs are {', '.join(map(str, sorted(known)))}")
        with click.progressbar(length=steps, label=f"recording GPU {gpu}") as bar:
            written = write(Recording(backend, gpu, load), out, steps, interval / 1000, bar.update)
    click.echo(f"{written} samples are in {out}")


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None or math.isnan(value) else round(value / factor, 6)


def _role(process: Process) -> str:
    return f"pid-{process.pid}"


def _processes(processes: list[Process], usage: Usage | None) -> dict[str, Any]:
    window = usage.window if usage else None
    held = [{"role": _role(each), "fb_used_mib": _scaled(each.memory_bytes, 2**20)} for each in processes]
    ratios = window.ratios if window else {}
    active = [
        {"role": f"pid-{pid}", "sm": _percent(each, Activity.SM), "mem": _percent(each, Activity.MEMORY)}
        for pid, each in ratios.items()
    ]
    return {"procs": held, "proc_util": active}


def _percent(ratios: Mapping[Activity, float], kind: Activity) -> float:
    return round(100 * ratios.get(kind, 0.0), 3)


def _bad(seen: str, todo: str) -> ExporterError:
    return ExporterError(seen, step=_STEP, todo=todo)
