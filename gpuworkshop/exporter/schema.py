"""How each release of dcgm-exporter names the fields: metric names, help, types, units and node label.

Three incompatible outputs are in use. Up to 4.8.2 the node label is `Hostname`; 4.8.3 and 4.8.4 write
`hostname`; 4.9 renames the metrics as well and gives base units, so name, unit and type change together.
One row of the table is one quantity with both its names; the default rows are those of dcgm-exporter's
own default counters file, in its order. `DCGM_FI_DRIVER_VERSION` is a label there, not a metric.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from gpuworkshop.exporter.fields import Field


def _integer(value: float) -> str:
    return str(round(value))


def _floor(value: float) -> str:
    return str(math.floor(value))


def _double(value: float) -> str:
    return f"{value:.6f}"


# Unit as DCGM writes it: factor from our base unit, and how DCGM prints such a value.
_UNITS: dict[str, tuple[float, Callable[[float], str]]] = {
    "": (1, _integer),
    "C": (1, _integer),
    "MHz": (1e-6, _integer),
    "Hz": (1, _integer),
    "W": (1, _double),
    "mJ": (1e3, _integer),
    "J": (1, _double),
    "%": (100, _integer),
    "ratio": (1, _double),
    "MiB": (2**-20, _floor),
    "bytes": (1, _integer),
    "MB/s": (1e-6, _integer),
    "B/s": (1, _integer),
}


@dataclass(frozen=True)
class Metric:
    """One metric family of a schema: a field, its name there, and how its values are written."""

    field: Field
    name: str
    type: str
    unit: str
    help: str

    def text(self, value: float) -> str:
        """The value (in the field's base unit) in this metric's unit: integers as such, else 6 decimals."""
        factor, write = _UNITS[self.unit]
        return write(value * factor)


@dataclass(frozen=True)
class Schema:
    """What one release of dcgm-exporter writes; its default file leaves the `extended` metrics out.

    Without a `driver_label` the driver's version is no label.
    """

    release: str
    hostname_label: str
    driver_label: str
    metrics: tuple[Metric, ...]
    extended: tuple[Metric, ...]


_GAUGE, _COUNTER = "gauge", "counter"
_Name = tuple[str, str, str]  # name without DCGM_FI_, unit, type

# Field, help, name up to 4.8.4, name from 4.9.
_DEFAULT: tuple[tuple[Field, str, _Name | None, _Name], ...] = (
    (Field.SM_CLOCK, "SM clock frequency",
     ("DEV_SM_CLOCK", "MHz", _GAUGE), ("DEV_SM_CLOCK_HERTZ", "Hz", _GAUGE)),
    (Field.MEMORY_CLOCK, "Memory clock frequency",
     ("DEV_MEM_CLOCK", "MHz", _GAUGE), ("DEV_MEMORY_CLOCK_HERTZ", "Hz", _GAUGE)),
    (Field.MEMORY_TEMP, "Memory temperature",
     ("DEV_MEMORY_TEMP", "C", _GAUGE), ("DEV_MEMORY_TEMP_CELSIUS", "C", _GAUGE)),
    (Field.GPU_TEMP, "GPU temperature",
     ("DEV_GPU_TEMP", "C", _GAUGE), ("DEV_GPU_TEMP_CELSIUS", "C", _GAUGE)),
    (Field.POWER, "Power draw",
     ("DEV_POWER_USAGE", "W", _GAUGE), ("DEV_BOARD_POWER_WATTS", "W", _GAUGE)),
    (Field.ENERGY, "Total energy consumption since boot",
     ("DEV_TOTAL_ENERGY_CONSUMPTION", "mJ", _COUNTER), ("DEV_GPU_ENERGY_JOULES_TOTAL", "J", _COUNTER)),
    (Field.PCIE_REPLAY, "Total number of PCIe retries",
     ("DEV_PCIE_REPLAY_COUNTER", "", _COUNTER), ("DEV_PCIE_REPLAY_TOTAL", "", _COUNTER)),
    (Field.GPU_UTIL, "GPU utilization",
     ("DEV_GPU_UTIL", "%", _GAUGE), ("DEV_GPU_UTIL_RATIO", "ratio", _GAUGE)),
    (Field.MEM_COPY_UTIL, "Memory utilization",
     ("DEV_MEM_COPY_UTIL", "%", _GAUGE), ("DEV_MEMORY_UTIL_RATIO", "ratio", _GAUGE)),
    (Field.ENC_UTIL, "Encoder utilization",
     ("DEV_ENC_UTIL", "%", _GAUGE), ("DEV_ENC_UTIL_RATIO", "ratio", _GAUGE)),
    (Field.DEC_UTIL, "Decoder utilization",
     ("DEV_DEC_UTIL", "%", _GAUGE), ("DEV_DEC_UTIL_RATIO", "ratio", _GAUGE)),
    (Field.XID, "Value of the last XID error encountered",
     ("DEV_XID_ERRORS", "", _GAUGE), ("DEV_XID_ERROR", "", _GAUGE)),
    (Field.FB_FREE, "Framebuffer memory free",
     ("DEV_FB_FREE", "MiB", _GAUGE), ("DEV_FB_FREE_BYTES", "bytes", _GAUGE)),
    (Field.FB_USED, "Framebuffer memory used",
     ("DEV_FB_USED", "MiB", _GAUGE), ("DEV_FB_USED_BYTES", "bytes", _GAUGE)),
    (Field.FB_RESERVED, "Framebuffer memory reserved",
     ("DEV_FB_RESERVED", "MiB", _GAUGE), ("DEV_FB_RESERVED_BYTES", "bytes", _GAUGE)),
    (Field.FB_CAPACITY, "Framebuffer memory in all",
     None, ("DEV_FB_CAPACITY_BYTES", "bytes", _GAUGE)),
    # Up to 4.8.4 this is typed as a counter, though DCGM gives a rate.
    (Field.NVLINK, "NVLink bandwidth of all lanes",
     ("DEV_NVLINK_BANDWIDTH_TOTAL", "MB/s", _COUNTER),
     ("DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", "B/s", _GAUGE)),
    (Field.VGPU_LICENSE, "vGPU licence status",
     ("DEV_VGPU_LICENSE_STATUS", "", _GAUGE), ("DEV_VGPU_LICENSE_STATUS", "", _GAUGE)),
    (Field.ROWS_UNCORRECTABLE, "Number of remapped rows for uncorrectable errors",
     ("DEV_UNCORRECTABLE_REMAPPED_ROWS", "", _COUNTER), ("DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", "", _COUNTER)),
    (Field.ROWS_CORRECTABLE, "Number of remapped rows for correctable errors",
     ("DEV_CORRECTABLE_REMAPPED_ROWS", "", _COUNTER), ("DEV_ROW_REMAP_CORRECTABLE_TOTAL", "", _COUNTER)),
    (Field.ROW_REMAP_FAILED, "Whether remapping of rows has failed",
     ("DEV_ROW_REMAP_FAILURE", "", _GAUGE), ("DEV_ROW_REMAP_FAILED", "", _GAUGE)),
    (Field.GR_ENGINE, "Ratio of time the graphics engine is active",
     ("PROF_GR_ENGINE_ACTIVE", "ratio", _GAUGE), ("PROF_GR_ENGINE_UTIL_RATIO", "ratio", _GAUGE)),
    (Field.TENSOR, "Ratio of cycles the tensor pipe is active",
     ("PROF_PIPE_TENSOR_ACTIVE", "ratio", _GAUGE), ("PROF_TENSOR_UTIL_RATIO", "ratio", _GAUGE)),
    (Field.DRAM, "Ratio of cycles the device memory interface is sending or receiving",
     ("PROF_DRAM_ACTIVE", "ratio", _GAUGE), ("PROF_DRAM_UTIL_RATIO", "ratio", _GAUGE)),
    (Field.PCIE_TX, "Rate of bytes sent over PCIe, headers and payload",
     ("PROF_PCIE_TX_BYTES", "B/s", _GAUGE), ("PROF_PCIE_TX_BYTES", "B/s", _GAUGE)),
    (Field.PCIE_RX, "Rate of bytes received over PCIe, headers and payload",
     ("PROF_PCIE_RX_BYTES", "B/s", _GAUGE), ("PROF_PCIE_RX_BYTES", "B/s", _GAUGE)),
)  # fmt: skip

_EXTENDED: tuple[tuple[Field, str, _Name | None, _Name], ...] = (
    (Field.SM_ACTIVE, "Ratio of cycles an SM has at least one warp assigned",
     ("PROF_SM_ACTIVE", "ratio", _GAUGE), ("PROF_SM_UTIL_RATIO", "ratio", _GAUGE)),
    (Field.SM_OCCUPANCY, "Ratio of warps resident on an SM to the most it can hold",
     ("PROF_SM_OCCUPANCY", "ratio", _GAUGE), ("PROF_SM_OCCUPANCY_RATIO", "ratio", _GAUGE)),
    (Field.FP64, "Ratio of cycles the fp64 pipe is active",
     ("PROF_PIPE_FP64_ACTIVE", "ratio", _GAUGE), ("PROF_FP64_UTIL_RATIO", "ratio", _GAUGE)),
    (Field.FP32, "Ratio of cycles the fp32 pipe is active",
     ("PROF_PIPE_FP32_ACTIVE", "ratio", _GAUGE), ("PROF_FP32_UTIL_RATIO", "ratio", _GAUGE)),
    (Field.FP16, "Ratio of cycles the fp16 pipe is active",
     ("PROF_PIPE_FP16_ACTIVE", "ratio", _GAUGE), ("PROF_FP16_UTIL_RATIO", "ratio", _GAUGE)),
)  # fmt: skip


def _metrics(
    rows: tuple[tuple[Field, str, _Name | None, _Name], ...], *, renamed: bool
) -> tuple[Metric, ...]:
    metrics = []
    for field, about, old, new in rows:
        chosen = new if renamed else old
        if chosen is None:
            continue
        name, unit, kind = chosen
        # A plain ratio has no unit to tell; DCGM's own help says "(in %)" of some, which is wrong.
        suffix = f" (in {unit})" if unit not in ("", "ratio") else ""
        metrics.append(Metric(field, f"DCGM_FI_{name}", kind, unit, f"{about}{suffix}."))
    return tuple(metrics)


def _schema(release: str, hostname_label: str, *, renamed: bool) -> Schema:
    return Schema(
        release=release,
        hostname_label=hostname_label,
        driver_label="DCGM_FI_SYSTEM_DRIVER_VERSION" if renamed else "DCGM_FI_DRIVER_VERSION",
        metrics=_metrics(_DEFAULT, renamed=renamed),
        extended=_metrics(_EXTENDED, renamed=renamed),
    )


SCHEMAS = {
    schema.release: schema
    for schema in (
        _schema("4.8.2", "Hostname", renamed=False),
        _schema("4.8.4", "hostname", renamed=False),
        _schema("4.9", "hostname", renamed=True),
    )
}
