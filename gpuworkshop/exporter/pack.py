"""Packs a recorded trace (one JSON object a line) into the compact form kept as package data.

    python -m gpuworkshop.exporter.pack TRACE.jsonl gpuworkshop/exporter/data/h200-known-loads.json.gz

The compact form is gzipped JSON by columns: `step_s` seconds between samples, `columns` with one list a
field (null where it was not available), `residents` the roles that had a process on the GPU at each
sample (joined by `+`), and `events`, `[t, role, load, on_s, off_s]` for each process that was started.
"""

from __future__ import annotations

import gzip
import json
import statistics
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

# The recorded column of each kept quantity; NVML's own PCIe rate, the throttle bits and the processes'
# utilisation are left out, as nothing replays them.
COLUMNS = (
    "gpu_util", "mem_copy_util", "fb_used_mib", "fb_free_mib", "power_w", "temp_c", "mem_temp_c", "sm_mhz",
    "mem_mhz", "gpm_gr_engine", "gpm_sm_active", "gpm_sm_occupancy", "gpm_tensor_active", "gpm_dram_active",
    "gpm_fp64", "gpm_fp32", "gpm_fp16", "gpm_pcie_tx_mib_s", "gpm_pcie_rx_mib_s",
)  # fmt: skip


def pack(lines: list[str], *, about: str, driver: str) -> dict[str, Any]:
    """The compact form of a recorded trace's lines. Raises ValueError if a sample is out of step."""
    entries = [json.loads(line) for line in lines if line.strip()]
    samples = [entry for entry in entries if "event" not in entry]
    step_s = _step(samples)
    for place, sample in enumerate(samples):
        if abs(sample["t"] - place * step_s) > step_s / 10:
            raise ValueError(f"sample {place} was taken at {sample['t']} s, not at {place * step_s:g} s")
    return {
        "about": about,
        "driver": driver,
        "step_s": step_s,
        "events": [[entry["t"], *entry["event"][1:5]] for entry in entries if "event" in entry],
        "residents": ["+".join(process["role"] for process in sample["procs"]) for sample in samples],
        "columns": {name: [sample[name] for sample in samples] for name in COLUMNS},
    }


def _step(samples: list[dict[str, Any]]) -> float:
    """The seconds between two samples, to the hundredth. Raises ValueError if there are not two."""
    if len(samples) < 2:
        raise ValueError("a trace has two samples at least")
    gaps = [float(later["t"]) - float(earlier["t"]) for earlier, later in pairwise(samples)]
    return round(statistics.median(gaps), 2)


@click.command()
@click.argument("recorded", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("packed", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--about", default="One NVIDIA H200 under known loads, sampled at 4 Hz", show_default=True)
@click.option("--driver", default="580", show_default=True, help="Driver version of the recording.")
def main(recorded: Path, packed: Path, about: str, driver: str) -> None:
    """Pack a recorded trace."""
    trace = pack(recorded.read_text("utf-8").splitlines(), about=about, driver=driver)
    # A fixed time in the header, so that the same recording packs to the same bytes.
    packed.write_bytes(gzip.compress(json.dumps(trace, separators=(",", ":")).encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
