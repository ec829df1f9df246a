"""The exporter on a real GPU under a known load: `python benchmarks/nvml_known_loads.py`.

Needs an NVIDIA GPU with its driver, and of packages only what the exporter needs. The kit's own load runs
20 s on and 20 s off, on the absolute clock, for three whole periods, while /metrics is read each second.
Printed are the wave that is read back, power and memory, what the exporter costs, and what it cannot read.
Aims: duty 50 % ± 3 %, memory to the MiB, under 1.5 % of a core per GPU, under 60 MiB resident.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import gpuworkshop

BURN = Path(gpuworkshop.__file__).parent / "deploy/charts/gpu-burn/files/gpu_burn.py"
# CUDA numbers GPUs by speed unless told to go by the bus, as NVML does.
ENVIRONMENT = {**os.environ, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "PYTHONUNBUFFERED": "1"}
UTIL, ENGINE = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
POWER, USED = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_FB_USED"
WHEN, TOOK = "gpuworkshop_sample_timestamp_seconds", "gpuworkshop_sample_duration_seconds"
QUIET_S = 20.0
# How long a context takes to be made, and a wave to have settled after an edge.
START_S, SETTLED_S = 8.0, 5.0

_SERIES = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')

Scrape = dict[tuple[str, str], float]


@dataclass
class Exporter:
    """The running exporter."""

    process: subprocess.Popen[str]
    url: str

    def text(self) -> str:
        with urllib.request.urlopen(self.url, timeout=10) as answer:
            body: bytes = answer.read()
        return body.decode()

    def cpu_s(self) -> float:
        """Processor seconds so far, of all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else float("nan")


@dataclass
class Run:
    """What was seen: the scrapes, and nvidia-smi's word on the memory beside the exporter's, in MiB."""

    scrapes: list[Scrape] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)

    def series(self, name: str, gpu: str) -> list[tuple[float, float]]:
        """Time and value, each sample once, however often it was scraped."""
        found = {
            scrape[WHEN, ""]: scrape[name, gpu]
            for scrape in self.scrapes
            if (name, gpu) in scrape and (WHEN, "") in scrape
        }
        return sorted(found.items())


@contextmanager
def exporter(*options: str) -> Iterator[Exporter]:
    command = [sys.executable, "-m", "gpuworkshop", "exporter", "--listen", "127.0.0.1:0", "--extended"]
    command += options
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        try:
            assert process.stdout
            found = re.search(r"http://\S+", process.stdout.readline())
            if not found:
                sys.exit("the exporter did not start")
            yield Exporter(process, found[0])
        finally:
            process.terminate()


@contextmanager
def burning(on_s: float, off_s: float) -> Iterator[None]:
    command = [sys.executable, str(BURN), f"{on_s:g}", f"{off_s:g}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        try:
            yield
            if process.poll() is not None:
                sys.exit(f"the load ended by itself, with code {process.returncode}")
        finally:
            process.terminate()


def parse(text: str) -> Scrape:
    """Metric name and GPU index → value."""
    found: Scrape = {}
    for line in text.splitlines():
        if match := _SERIES.fullmatch(line):
            labels = dict(_LABEL.findall(match["labels"] or ""))
            found[match["name"], labels.get("gpu", "")] = float(match["value"])
    return found


def smi_used_mib(gpu: str) -> float | None:
    query = ["nvidia-smi", f"--id={gpu}", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    try:
        return float(subprocess.run(query, capture_output=True, text=True, check=True).stdout)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None


def watch(running: Exporter, gpu: str, until: float, half_s: float) -> Run:
    """Scrape at each full second; in the middle of each half of a period ask nvidia-smi too."""
    run, asked = Run(), -1
    while time.time() < until:
        time.sleep(1 - time.time() % 1)
        run.scrapes.append(parse(running.text()))
        run.resident.append(running.resident_mib())
        half, phase = divmod(time.time(), half_s)
        if phase > half_s / 2 and half != asked:
            asked = int(half)
            if (said := smi_used_mib(gpu)) is not None and (USED, gpu) in run.scrapes[-1]:
                run.memory.append((run.scrapes[-1][USED, gpu], said))
    return run


def edges(points: Sequence[tuple[float, float]], *, rising: bool) -> list[float]:
    """When a series passes the middle between its lowest and its highest value."""
    values = [value for _, value in points]
    middle = (min(values) + max(values)) / 2
    return [
        (earlier[0] + later[0]) / 2
        for earlier, later in pairwise(points)
        if (earlier[1] < middle <= later[1] if rising else later[1] < middle <= earlier[1])
    ]


def wave(name: str, points: Sequence[tuple[float, float]]) -> str:
    """The wave between the first and the last rising edge."""
    if len(points) < 2:
        return f"{name}: not there"
    up, down = edges(points, rising=True), edges(points, rising=False)
    if len(up) < 2:
        return f"{name}: no whole period among {len(points)} samples"
    span, cycles = up[-1] - up[0], len(up) - 1
    on = sum(next((end for end in down if end > start), up[-1]) - start for start in up[:-1])
    values = [value for _, value in points]
    return (
        f"{name}: period {span / cycles:.2f} s, duty {100 * on / span:.1f} %, {cycles} periods, "
        f"{min(values):g} to {max(values):g}"
    )


def settled(points: Sequence[tuple[float, float]], on_s: float, off_s: float, *, on: bool) -> list[float]:
    """The values in one half of the periods, without what comes just after an edge."""
    start, end = (0.0, on_s) if on else (on_s, on_s + off_s)
    return [value for at, value in points if start + SETTLED_S <= at % (on_s + off_s) < end - 1]


def mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else float("nan")


def report(run: Run, gpu: str, on_s: float, off_s: float) -> None:
    print(f"{len(run.scrapes)} scrapes, {len(run.series(POWER, gpu))} samples")
    for name in (UTIL, ENGINE):
        print(wave(name, run.series(name, gpu)))
    power = run.series(POWER, gpu)
    on, off = (mean(settled(power, on_s, off_s, on=half)) for half in (True, False))
    print(f"power: {on:.1f} W on, {off:.1f} W off")
    differences = [ours - theirs for ours, theirs in run.memory]
    print(f"memory used, exporter and nvidia-smi, MiB: {run.memory}; differences {differences}")
    took = [scrape[TOOK, ""] * 1000 for scrape in run.scrapes if (TOOK, "") in scrape]
    print(f"reading the GPUs: {statistics.median(took):.1f} ms in the median, {max(took):.1f} ms at most")
    print(f"resident: {run.resident[0]:.1f} MiB at first, {run.resident[-1]:.1f} MiB at last")


def what_is_missing(text: str) -> None:
    for line in text.splitlines():
        if line.startswith(("gpuworkshop_field_unavailable{", "gpuworkshop_nvml_errors_total{")):
            print(" ", line)


def cost(running: Exporter, since: tuple[float, float], gpus: int, what: str) -> None:
    """The processor's time since then: (monotonic seconds, processor seconds)."""
    began, used = since
    share = (running.cpu_s() - used) / (time.monotonic() - began)
    print(f"processor, {what}: {100 * share / gpus:.2f} % of a core per GPU ({gpus})")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--on", type=float, default=20.0)
    options.add_argument("--off", type=float, default=20.0)
    options.add_argument("--periods", type=int, default=3)
    chosen = options.parse_args()
    period, gpu = chosen.on + chosen.off, "0"
    with exporter() as running:
        time.sleep(2)
        gpus = len([1 for name, _ in parse(running.text()) if name == "gpuworkshop_gpu_up"])
        since = time.monotonic(), running.cpu_s()
        time.sleep(QUIET_S)
        cost(running, since, gpus, "1 Hz, nobody scrapes")
        # The load starts in a pause that is long enough for it to be ready at the next edge.
        if period - time.time() % period < START_S or time.time() % period < chosen.on:
            time.sleep((chosen.on - time.time()) % period)
        with burning(chosen.on, chosen.off):
            since = time.monotonic(), running.cpu_s()
            until = (time.time() // period + 1 + chosen.periods) * period + 4
            run = watch(running, gpu, until, min(chosen.on, chosen.off))
            cost(running, since, gpus, "1 Hz, a scrape each second")
        report(run, gpu, chosen.on, chosen.off)
        print("fields without a value, and errors:")
        what_is_missing(running.text())


if __name__ == "__main__":
    main()
