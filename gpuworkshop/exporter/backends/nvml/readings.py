"""What NVML says of a GPU's fields: a number in the field's base unit, or the reason for having none.

Each source asks one or a few fields, and learns what its GPU cannot tell: that is not asked again. The
numbers of fields are NVML's own, which never change. An impossible number counts as none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gpuworkshop.exporter.backends.nvml.library import GONE, NEVER, Nvml, NvmlError
from gpuworkshop.exporter.fields import Field

# A number, or the reason why there is none: a cause of NVML's, or one of these.
Told = Mapping[Field, float | str]
IMPOSSIBLE = "impossible_value"
NO_NUMBER = "no_number"

_HOTTEST = 200.0
# Ratios come from counters that are not read at the same instant, so the greatest may be a little over 1.
_ROUNDING = 1.005


class Source(Protocol):
    """Some fields of one GPU or MIG instance."""

    def read(self) -> Told:
        """An entry for each of its fields. Raises NvmlError only if the GPU or the driver is gone."""

    def close(self) -> None:
        """Free what it holds of the library's."""


def plausible(field: Field, value: float) -> float | str:
    """The value, or the reason why it can't be one."""
    if math.isnan(value):
        return NO_NUMBER
    if not 0 <= value < math.inf:
        return IMPOSSIBLE
    if field.endswith("_ratio"):
        return min(value, 1.0) if value <= _ROUNDING else IMPOSSIBLE
    if field.endswith("_celsius") and value > _HOTTEST:
        return IMPOSSIBLE
    return value


@dataclass(frozen=True)
class Call:
    """A function of NVML that tells some fields of a device; `numbers` takes them from its answer."""

    name: str
    fields: Sequence[Field]
    numbers: Callable[[Any], Sequence[float]]
    arguments: Sequence[int] = ()


_MEMORY_VERSION_2 = 0x02000028  # which tells what is reserved apart from what is used
_SM, _MEMORY = 1, 2  # NVML_CLOCK_…
_DIE = 0  # NVML_TEMPERATURE_GPU


def _license(features: Any) -> Sequence[float]:
    """1 if a vGPU licence is in force; 0 also where there is no such thing, as DCGM has it."""
    known = list(features.gridLicensableFeatures)[: features.licensableFeaturesCount]
    held = features.isGridLicenseSupported and any(feature.featureState for feature in known)
    return [float(bool(held))]


# What a whole GPU tells whether or not it is cut into instances.
BOARD = (
    Call("nvmlDeviceGetClockInfo", [Field.SM_CLOCK], lambda mhz: [mhz * 1e6], [_SM]),
    Call("nvmlDeviceGetClockInfo", [Field.MEMORY_CLOCK], lambda mhz: [mhz * 1e6], [_MEMORY]),
    Call("nvmlDeviceGetTemperature", [Field.GPU_TEMP], lambda celsius: [celsius], [_DIE]),
    Call("nvmlDeviceGetPowerUsage", [Field.POWER], lambda milliwatts: [milliwatts / 1000]),
    Call("nvmlDeviceGetTotalEnergyConsumption", [Field.ENERGY], lambda millijoules: [millijoules / 1000]),
    Call("nvmlDeviceGetPcieReplayCounter", [Field.PCIE_REPLAY], lambda count: [count]),
    Call("nvmlDeviceGetGridLicensableFeatures", [Field.VGPU_LICENSE], _license),
)
# What there is only of a GPU that is not cut.
ENGINES = (
    Call(
        "nvmlDeviceGetUtilizationRates",
        [Field.GPU_UTIL, Field.MEM_COPY_UTIL],
        lambda rates: [rates.gpu / 100, rates.memory / 100],
    ),
    Call("nvmlDeviceGetEncoderUtilization", [Field.ENC_UTIL], lambda answer: [answer[0] / 100]),
    Call("nvmlDeviceGetDecoderUtilization", [Field.DEC_UTIL], lambda answer: [answer[0] / 100]),
)
# What a GPU and a MIG instance each have of their own.
MEMORY = Call(
    "nvmlDeviceGetMemoryInfo",
    [Field.FB_FREE, Field.FB_USED, Field.FB_RESERVED, Field.FB_CAPACITY],
    lambda memory: [memory.free, memory.used, memory.reserved, memory.total],
    [_MEMORY_VERSION_2],
)


class Asked:
    """A `Source` by one call."""

    def __init__(self, nvml: Nvml, handle: Any, call: Call) -> None:
        self._nvml = nvml
        self._handle = handle
        self._call = call
        self._never = ""

    def read(self) -> Told:
        """The fields of the call."""
        if self._never:
            return dict.fromkeys(self._call.fields, self._never)
        try:
            answer = self._nvml.call(self._call.name, self._handle, *self._call.arguments)
        except NvmlError as error:
            if error.cause in GONE:
                raise
            self._never = error.cause if error.cause in NEVER else ""
            return dict.fromkeys(self._call.fields, error.cause)
        numbers = zip(self._call.fields, self._call.numbers(answer), strict=True)
        return {field: plausible(field, float(number)) for field, number in numbers}

    def close(self) -> None:
        """It holds nothing."""


# NVML_FI_DEV_…: memory temperature, rows remapped (uncorrectable, correctable), a remapping that failed.
_NUMBERED = {
    82: Field.MEMORY_TEMP,
    143: Field.ROWS_UNCORRECTABLE,
    142: Field.ROWS_CORRECTABLE,
    145: Field.ROW_REMAP_FAILED,
}
# The member of a value that holds it, by NVML_VALUE_TYPE_….
_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


class Numbered:
    """A `Source` by NVML's field values: one call for several fields, each with an error of its own."""

    _name = "nvmlDeviceGetFieldValues"

    def __init__(self, nvml: Nvml, handle: Any) -> None:
        self._nvml = nvml
        self._handle = handle
        self._asked = dict(_NUMBERED)
        self._never: dict[Field, str] = {}

    def read(self) -> Told:
        """The fields that have a number in NVML."""
        told: dict[Field, float | str] = dict(self._never)
        if not self._asked:
            return told
        try:
            answers = self._nvml.call(self._name, self._handle, list(self._asked))
        except NvmlError as error:
            if error.cause in GONE:
                raise
            return told | dict.fromkeys(self._asked.values(), error.cause)
        for number, answer in zip(list(self._asked), answers, strict=True):
            field = self._asked[number]
            told[field] = self._value(field, answer)
            if told[field] in NEVER:
                self._never[field] = str(told[field])
                del self._asked[number]
        return told

    def _value(self, field: Field, answer: Any) -> float | str:
        if cause := self._nvml.cause(answer.nvmlReturn):
            return cause
        if answer.valueType >= len(_MEMBERS):
            return NO_NUMBER
        return plausible(field, float(getattr(answer.value, _MEMBERS[answer.valueType])))

    def close(self) -> None:
        """It holds nothing."""
