"""`nvidia-smi` in a container with simulated GPUs: the list, or the table, of that container's GPUs.

It stands alone and asks the exporter, by its command line, what the GPUs read now; so it starts fast. A
container finds it on its PATH as a small script: `python -I nvidia_smi.py GPU_FILE NODE UUID,UUID [-L]`.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_SAMPLE = re.compile(r"DCGM_FI_DEV_(\w+)\{(.*)\} (\S+) \d+")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_RULE = "+" + "-" * 77 + "+"
_COLUMNS = "{:>3}  {:<24.24} {:>4} {:>6}  {:>21}  {:>8}"
Reading = dict[str, str]


def main(gpu_file: str, node: str, uuids: str, arguments: Sequence[str]) -> int:
    """Print what is asked for; exit code 2 for an option that the simulation lacks."""
    readings = read(Path(gpu_file), node)
    shown = [readings[uuid] for uuid in uuids.split(",") if uuid in readings]
    if list(arguments) in (["-L"], ["--list-gpus"]):
        print("\n".join(f"GPU {i}: {gpu['modelName']} (UUID: {gpu['UUID']})" for i, gpu in enumerate(shown)))
    elif not arguments:
        print(table(shown))
    else:
        print(f"simulated nvidia-smi: {' '.join(arguments)} is not simulated; there are no options, and -L")
        return 2
    return 0


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
