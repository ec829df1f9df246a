"""`nvidia-smi` in a container with simulated GPUs: its list, its table or its CSV, of that container's GPUs.

It stands alone and asks the exporter, by its command line, what the GPUs read now; so it starts fast. A
container finds it on its PATH as a small script: `python -I nvidia_smi.py GPU_FILE NODE UUID,UUID [OPTION]…`
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

INVALID = 2  # the real one's exit code for an argument that it does not take
_SAMPLE = re.compile(r"DCGM_FI_DEV_(\w+)\{(.*)\} (\S+) \d+")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_RULE = "+" + "-" * 77 + "+"
_COLUMNS = "{:>3}  {:<24.24} {:>4} {:>6}  {:>21}  {:>8}"
_USAGE = (
    "simulated nvidia-smi: {} is not simulated; there are no options, -L, and "
    "--query-gpu=FIELD,FIELD --format=csv[,noheader][,nounits]"
)
_NO_FORMAT = "\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help."
Reading = dict[str, str]


class Refusal(Exception):
    """An argument that it does not take; its words are what is printed."""


class _Column(NamedTuple):
    """A column of the CSV: its title, its unit, and its value of a GPU, which may raise KeyError."""

    title: str
    unit: str
    value: Callable[[Reading], str]


def _whole(*names: str) -> Callable[[Reading], str]:
    """The sum of these fields of DCGM's, as a whole number."""
    return lambda gpu: f"{sum(float(gpu[name]) for name in names):.0f}"


def _label(name: str) -> Callable[[Reading], str]:
    return lambda gpu: gpu[name]


_ALL = (
    _Column("index", "", _label("index")),
    _Column("count", "", _label("count")),
    _Column("timestamp", "", _label("timestamp")),
    _Column("name", "", _label("modelName")),
    _Column("uuid", "", _label("UUID")),
    _Column("pci.bus_id", "", _label("pci_bus_id")),
    _Column("driver_version", "", _label("DCGM_FI_DRIVER_VERSION")),
    _Column("utilization.gpu", "%", _whole("GPU_UTIL")),
    _Column("utilization.memory", "%", _whole("MEM_COPY_UTIL")),
    _Column("memory.used", "MiB", _whole("FB_USED")),
    _Column("memory.free", "MiB", _whole("FB_FREE")),
    _Column("memory.total", "MiB", _whole("FB_USED", "FB_FREE")),
    _Column("power.draw", "W", lambda gpu: f"{float(gpu['POWER_USAGE']):.2f}"),
    _Column("temperature.gpu", "", _whole("GPU_TEMP")),
    _Column("clocks.current.sm", "MHz", _whole("SM_CLOCK")),
)
_ALSO = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "clocks.sm": "clocks.current.sm",
}


def main(gpu_file: str, node: str, uuids: str, arguments: Sequence[str]) -> int:
    """Print what is asked for; the exit code."""
    try:
        show = _asked(arguments)
    except Refusal as refused:
        print(refused)
        return INVALID
    readings = read(Path(gpu_file), node)
    print(show([readings[uuid] for uuid in uuids.split(",") if uuid in readings]))
    return 0


def _asked(arguments: Sequence[str]) -> Callable[[Sequence[Reading]], str]:
    """What shows the GPUs as the arguments have it. Raises Refusal."""
    if not arguments:
        return table
    if list(arguments) in (["-L"], ["--list-gpus"]):
        return _list
    given = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    others = [each for each in arguments if not each.startswith(("--query-gpu=", "--format="))]
    if others or "--query-gpu" not in given:
        raise Refusal(_USAGE.format(" ".join(others or arguments)))
    columns = [_column(name.strip()) for name in given["--query-gpu"].split(",")]
    formats = given.get("--format", "").split(",")
    if formats == [""]:
        raise Refusal(_NO_FORMAT)
    if "csv" not in formats or set(formats) - {"csv", "noheader", "nounits"}:
        raise Refusal(_USAGE.format(f"--format={given['--format']}"))
    return lambda gpus: csv(columns, gpus, header="noheader" not in formats, units="nounits" not in formats)


def _column(name: str) -> _Column:
    for column in _ALL:
        if column.title == _ALSO.get(name, name):
            return column
    raise Refusal(f'Field "{name}" is not a valid field to query.\n')


def read(gpu_file: Path, node: str) -> dict[str, Reading]:
    """What each GPU reads now, by UUID: DCGM's fields without their prefix, and the labels."""
    now = f"{time.time():.0f}"
    command = [sys.executable, "-P", "-m", "gpuworkshop", "exporter", "--gpus", str(gpu_file)]
    command += ["--hostname", node, "--backfill", now, now]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    readings: dict[str, Reading] = {}
    for name, block, value in _SAMPLE.findall(text):
        labels = dict(_LABEL.findall(block))
        readings.setdefault(labels["UUID"], labels)[name] = value
    return readings


def _list(gpus: Sequence[Reading]) -> str:
    return "\n".join(f"GPU {i}: {gpu['modelName']} (UUID: {gpu['UUID']})" for i, gpu in enumerate(gpus))


def csv(columns: Sequence[_Column], gpus: Sequence[Reading], *, header: bool, units: bool) -> str:
    """A line for each GPU; the titles have their units also where the values have none."""
    titles = [f"{column.title} [{column.unit}]" if column.unit else column.title for column in columns]
    lines = [", ".join(titles)] if header else []
    now = f"{time.strftime('%Y/%m/%d %H:%M:%S')}.{time.time_ns() // 10**6 % 1000:03d}"
    for index, gpu in enumerate(gpus):
        known = {**gpu, "index": str(index), "count": str(len(gpus)), "timestamp": now}
        lines.append(", ".join(_cell(column, known, units) for column in columns))
    return "\n".join(lines)


def _cell(column: _Column, gpu: Reading, units: bool) -> str:
    try:
        value = column.value(gpu)
    except KeyError:
        return "[N/A]"
    return f"{value} {column.unit}" if units and column.unit else value


def table(gpus: Sequence[Reading]) -> str:
    """The table, a row for each GPU."""
    driver = gpus[0].get("DCGM_FI_DRIVER_VERSION", "") if gpus else ""
    lines = [_RULE, _row(f"NVIDIA-SMI (simulated by gpuworkshop)    Driver Version: {driver}"), _RULE]
    lines += [_row(_COLUMNS.format("GPU", "Name", "Temp", "Power", "Memory-Usage", "GPU-Util")), _RULE]
    for index, gpu in enumerate(gpus):
        used, free, heat, power, util = (
            float(gpu[name]) for name in ("FB_USED", "FB_FREE", "GPU_TEMP", "POWER_USAGE", "GPU_UTIL")
        )
        memory = f"{used:.0f}MiB / {used + free:.0f}MiB"
        row = (str(index), gpu["modelName"], f"{heat:.0f}C", f"{power:.0f}W", memory, f"{util:.0f}%")
        lines.append(_row(_COLUMNS.format(*row)))
    return "\n".join([*lines, _RULE])


def _row(text: str) -> str:
    return f"| {text:<75.75} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
