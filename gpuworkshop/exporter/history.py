"""Back-filled history as OpenMetrics, for `promtool tsdb create-blocks-from openmetrics`.

OpenMetrics wants each family in one piece, so all values are computed first, 8 bytes each, and written
family by family. DCGM's counters go in as `unknown`, since OpenMetrics wants counters named `…_total`.

To look like what Prometheus scrapes later, every series can be given the target's labels; where a series
has that label already, its own becomes `exported_…`, as Prometheus does it.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from gpuworkshop.exporter.devices import Backend, Device, Pod, PodMapping
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.rendering import Labels, block, labels
from gpuworkshop.exporter.sampler import Snapshot, sample
from gpuworkshop.exporter.schema import Metric, Schema

BACKFILLED = "gpuworkshop_backfilled_until_seconds"

_Columns = Mapping[Field, "array[float]"]


class History:
    """All readings from `start` to `end` (Unix seconds, both included), `step` seconds apart."""

    def __init__(
        self,
        backend: Backend,
        mapping: PodMapping,
        metrics: Sequence[Metric],
        span: tuple[float, float, float],
    ) -> None:
        start, end, step = span
        count = math.floor((end - start) / step + 1e-9) + 1
        self._times = [start + number * step for number in range(count)]
        self._metrics = metrics
        self._columns: dict[Device, dict[Field, array[float]]] = {}
        self._pods: dict[Device, Sequence[Pod]] = {}
        for number, at in enumerate(self._times):
            self._last = sample(backend, mapping, at)
            self._keep(number, self._last)

    def lines(self, schema: Schema, hostname: str, target: Labels) -> Iterator[str]:
        """The text in pieces, with the `target`'s labels on every series."""
        stamps = [f" {at:.3f}\n" if at % 1 else f" {at:.0f}\n" for at in self._times]
        devices = [
            [_block(labels(device, pod, schema, hostname), target) for pod in self._pods[device] or (None,)]
            for device in self._columns
        ]
        for metric in self._metrics:
            series = list(zip(devices, self._columns.values(), strict=True))
            if any(metric.field in columns for _, columns in series):
                yield _header(
                    metric.name, "unknown" if metric.type == "counter" else metric.type, metric.help
                )
                yield from _family(metric, series, stamps)
        yield from self._marks(devices, target, stamps)
        yield "# EOF\n"

    def _keep(self, number: int, snapshot: Snapshot) -> None:
        wanted = {metric.field for metric in self._metrics}
        for held in snapshot.devices:
            device = held.reading.device
            self._pods[device] = held.pods
            columns = self._columns.setdefault(device, {})
            for field in wanted & held.reading.values.keys():
                column = columns.setdefault(field, array("d", [math.nan]) * len(self._times))
                column[number] = held.reading.values[field]

    def _marks(
        self, devices: Sequence[Sequence[str]], target: Labels, stamps: Sequence[str]
    ) -> Iterator[str]:
        """What tells that the history was simulated, and until when each series was back-filled."""
        for family in self._last.families:
            if family.name.endswith("_info"):
                yield _header(family.name, family.type, family.help)
                for pairs, _ in family.samples:
                    prefix = f"{family.name}{_block(list(pairs), target)} 1"
                    yield "".join([prefix + stamp for stamp in stamps])
        yield _header(BACKFILLED, "gauge", "Unix time until which the history was computed, not scraped.")
        for labelled in chain.from_iterable(devices):
            prefix = f"{BACKFILLED}{labelled} {self._times[-1]:.3f}"
            yield "".join([prefix + stamp for stamp in stamps])


def _family(
    metric: Metric, series: Sequence[tuple[Sequence[str], _Columns]], stamps: Sequence[str]
) -> Iterator[str]:
    for blocks, columns in series:
        column = columns.get(metric.field, ())
        points = [
            f" {metric.text(value)}{stamp}"
            for value, stamp in zip(column, stamps, strict=False)
            if value == value
        ]
        for labelled in blocks:
            prefix = metric.name + labelled
            yield "".join([prefix + point for point in points])


def _header(name: str, kind: str, about: str) -> str:
    return f"# HELP {name} {about}\n# TYPE {name} {kind}\n"


def _block(own: Labels, target: Labels) -> str:
    taken = {name for name, _ in target}
    return block([(f"exported_{name}" if name in taken else name, value) for name, value in own] + target)
