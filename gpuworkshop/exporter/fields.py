"""The quantities that a GPU backend can read, each in its natural base unit.

A backend knows nothing of DCGM's names, and a schema (see `schema`) nothing of where a value comes from:
this enumeration is all that the two share. A field that a backend cannot read is left out of its
readings; it is never 0 for want of knowledge.
"""

from __future__ import annotations

from enum import StrEnum


class Field(StrEnum):
    """One quantity of one GPU or MIG instance; the value's last words are its unit."""

    SM_CLOCK = "sm_clock_hertz"
    MEMORY_CLOCK = "memory_clock_hertz"
    MEMORY_TEMP = "memory_temp_celsius"
    GPU_TEMP = "gpu_temp_celsius"
    POWER = "power_watts"
    ENERGY = "energy_joules_total"
    PCIE_REPLAY = "pcie_replay_total"
    GPU_UTIL = "gpu_util_ratio"
    MEM_COPY_UTIL = "memory_copy_util_ratio"
    ENC_UTIL = "encoder_util_ratio"
    DEC_UTIL = "decoder_util_ratio"
    XID = "last_xid"
    FB_FREE = "framebuffer_free_bytes"
    FB_USED = "framebuffer_used_bytes"
    FB_RESERVED = "framebuffer_reserved_bytes"
    FB_CAPACITY = "framebuffer_capacity_bytes"
    NVLINK = "nvlink_bytes_per_second"
    VGPU_LICENSE = "vgpu_license_status"
    ROWS_UNCORRECTABLE = "rows_remapped_uncorrectable_total"
    ROWS_CORRECTABLE = "rows_remapped_correctable_total"
    ROW_REMAP_FAILED = "row_remap_failed"
    GR_ENGINE = "graphics_engine_active_ratio"
    SM_ACTIVE = "sm_active_ratio"
    SM_OCCUPANCY = "sm_occupancy_ratio"
    TENSOR = "tensor_active_ratio"
    DRAM = "dram_active_ratio"
    FP64 = "fp64_active_ratio"
    FP32 = "fp32_active_ratio"
    FP16 = "fp16_active_ratio"
    PCIE_TX = "pcie_sent_bytes_per_second"
    PCIE_RX = "pcie_received_bytes_per_second"


# NVML and DCGM give these for a whole GPU only: a MIG instance has none of them.
NOT_ON_MIG = frozenset({Field.GPU_UTIL, Field.MEM_COPY_UTIL, Field.ENC_UTIL, Field.DEC_UTIL})
