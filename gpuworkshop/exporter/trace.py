"""The recorded trace of a real H200 under known loads, read from package data when it is first needed.

`pack` tells the file's form. A row here is one sample: a tuple of floats in base units, in the order of
`FIELDS`, NaN where the recording had nothing.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from gpuworkshop.errors import TraceError
from gpuworkshop.exporter.fields import Field

MODEL = "H200"

# Recorded column and factor to the field's base unit.
SOURCES: dict[Field, tuple[str, float]] = {
    Field.GPU_UTIL: ("gpu_util", 0.01),
    Field.MEM_COPY_UTIL: ("mem_copy_util", 0.01),
    Field.FB_USED: ("fb_used_mib", 2**20),
    Field.FB_FREE: ("fb_free_mib", 2**20),
    Field.POWER: ("power_w", 1),
    Field.GPU_TEMP: ("temp_c", 1),
    Field.MEMORY_TEMP: ("mem_temp_c", 1),
    Field.SM_CLOCK: ("sm_mhz", 1e6),
    Field.MEMORY_CLOCK: ("mem_mhz", 1e6),
    Field.GR_ENGINE: ("gpm_gr_engine", 0.01),
    Field.SM_ACTIVE: ("gpm_sm_active", 0.01),
    Field.SM_OCCUPANCY: ("gpm_sm_occupancy", 0.01),
    Field.TENSOR: ("gpm_tensor_active", 0.01),
    Field.DRAM: ("gpm_dram_active", 0.01),
    Field.FP64: ("gpm_fp64", 0.01),
    Field.FP32: ("gpm_fp32", 0.01),
    Field.FP16: ("gpm_fp16", 0.01),
    Field.PCIE_TX: ("gpm_pcie_tx_mib_s", 2**20),
    Field.PCIE_RX: ("gpm_pcie_rx_mib_s", 2**20),
}
FIELDS = tuple(SOURCES)
COLUMN = {field: place for place, field in enumerate(FIELDS)}

Row = tuple[float, ...]


@dataclass(frozen=True)
class Start:
    """A process of `role` was started at `t` seconds; it needs 2-3 s before its first kernel."""

    t: float
    role: str
    load: str
    on_s: float
    off_s: float


@dataclass(frozen=True)
class Trace:
    """A recording: one row every `step_s` seconds, and the roles that had a process there."""

    driver: str
    step_s: float
    rows: tuple[Row, ...]
    residents: tuple[tuple[str, ...], ...]
    starts: tuple[Start, ...]

    def index(self, t: float) -> int:
        """The sample at or just before `t` seconds."""
        return int(t / self.step_s)


@cache
def recorded() -> Trace:
    """The package's own trace. Raises TraceError if the file is broken."""
    file = resources.files("gpuworkshop.exporter").joinpath("data", "h200-known-loads.json.gz")
    try:
        return parse(json.loads(gzip.decompress(file.read_bytes())))
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise TraceError(
            f"the recorded trace {file} cannot be read: {type(error).__name__}: {error}",
            step="loading the trace",
            todo="install the package again; the file is part of it",
        ) from error


def parse(packed: Mapping[str, Any]) -> Trace:
    """A trace from its compact form. Raises KeyError, TypeError or ValueError for anything else."""
    columns = [
        [math.nan if value is None else value * factor for value in packed["columns"][name]]
        for name, factor in SOURCES.values()
    ]
    return Trace(
        driver=packed["driver"],
        step_s=packed["step_s"],
        rows=tuple(zip(*columns, strict=True)),
        residents=tuple(tuple(filter(None, roles.split("+"))) for roles in packed["residents"]),
        starts=tuple(Start(*start) for start in packed["events"]),
    )
