"""A GPU's profiling figures by NVML's GPM, which Hopper brought: the PROF fields, without DCGM.

GPM tells what went on between two samples. Two are kept and filled in turn, so each answer covers the time
since the last reading; one call asks all the metrics. Before Hopper there are no such figures to be had
from NVML, and nothing else is passed off as them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpuworkshop.exporter.backends.nvml.library import GONE, NEVER, Nvml, NvmlError
from gpuworkshop.exporter.backends.nvml.readings import Told, plausible
from gpuworkshop.exporter.fields import Field

BEFORE_HOPPER = "before_hopper"
ONE_SAMPLE = "first_sample"

_PERCENT, _MIB_PER_S = 0.01, float(2**20)
# NVML_GPM_METRIC_… of each field, which are added up, and the factor to the base unit.
_METRICS: dict[Field, tuple[tuple[int, ...], float]] = {
    Field.GR_ENGINE: ((1,), _PERCENT),
    Field.SM_ACTIVE: ((2,), _PERCENT),
    Field.SM_OCCUPANCY: ((3,), _PERCENT),
    Field.TENSOR: ((5,), _PERCENT),
    Field.DRAM: ((10,), _PERCENT),
    Field.FP64: ((11,), _PERCENT),
    Field.FP32: ((12,), _PERCENT),
    Field.FP16: ((13,), _PERCENT),
    Field.PCIE_TX: ((20,), _MIB_PER_S),
    Field.PCIE_RX: ((21,), _MIB_PER_S),
    Field.NVLINK: ((60, 61), _MIB_PER_S),
}


class Gpm:
    """The profiling fields of a GPU, or of its MIG instance `instance`; a `readings.Source`."""

    def __init__(self, nvml: Nvml, handle: Any, instance: int | None = None) -> None:
        self._nvml = nvml
        self._handle = handle
        self._instance = instance
        self._never: dict[Field, str] = {}
        self._samples: list[Any] = []
        self._filled = False  # whether the newer sample holds something
        self._request: Any = None

    def read(self) -> Told:
        """The fields, over the time since the last reading."""
        fields = [field for field in _METRICS if field not in self._never]
        if not fields:
            return dict(self._never)
        try:
            told = self._between(fields)
        except NvmlError as error:
            self._filled = False
            if error.cause in GONE:
                raise
            told = dict.fromkeys(fields, error.cause)
        # Learnt only from what is final: else a field is asked for again.
        self._never |= {field: str(answer) for field, answer in told.items() if _final(answer)}
        return {**self._never, **told}

    def close(self) -> None:
        """Free the samples."""
        samples, self._samples, self._filled = self._samples, [], False
        for sample in samples:
            try:
                self._nvml.call("nvmlGpmSampleFree", sample)
            except NvmlError:
                continue  # counted; there is nothing else to do

    def _between(self, fields: list[Field]) -> dict[Field, float | str]:
        if not self._samples and not self._supported():
            return dict.fromkeys(fields, BEFORE_HOPPER)
        while len(self._samples) < 2:
            self._samples.append(self._nvml.call("nvmlGpmSampleAlloc"))
        older, newer = self._samples
        # The older one is filled anew, and is then the newer one.
        self._fill(older)
        self._samples = [newer, older]
        if not self._filled:
            self._filled = True
            return dict.fromkeys(fields, ONE_SAMPLE)
        return self._told(fields)

    def _supported(self) -> bool:
        return bool(self._nvml.call("nvmlGpmQueryDeviceSupport", self._handle).isSupportedDevice)

    def _fill(self, sample: Any) -> None:
        if self._instance is None:
            self._nvml.call("nvmlGpmSampleGet", self._handle, sample)
        else:
            self._nvml.call("nvmlGpmMigSampleGet", self._handle, self._instance, sample)

    def _told(self, fields: list[Field]) -> dict[Field, float | str]:
        wanted = [metric for field in fields for metric in _METRICS[field][0]]
        # Many times larger than what is asked for, so one is kept.
        request = self._request = self._request or self._nvml.module.c_nvmlGpmMetricsGet_t()
        request.version = self._nvml.module.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(wanted)
        request.sample1, request.sample2 = self._samples
        for place, metric in enumerate(wanted):
            request.metrics[place].metricId = metric
        answers = self._nvml.call("nvmlGpmMetricsGet", request).metrics
        found = {metric: self._answer(answers[place]) for place, metric in enumerate(wanted)}
        return {field: _value(field, found.__getitem__) for field in fields}

    def _answer(self, metric: Any) -> float | str:
        return self._nvml.cause(metric.nvmlReturn) or float(metric.value)


def _value(field: Field, answer: Callable[[int], float | str]) -> float | str:
    """The sum of the field's metrics; a part that is not told leaves no sum."""
    metrics, factor = _METRICS[field]
    total = 0.0
    for metric in metrics:
        part = answer(metric)
        if isinstance(part, str):
            return part
        total += part
    return plausible(field, total * factor)


def _final(answer: float | str) -> bool:
    return answer == BEFORE_HOPPER or answer in NEVER
