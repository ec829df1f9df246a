"""A snapshot as exposition text: DCGM's metrics in one release's schema, then the exporter's own.

Written by hand because prometheus_client renames counters and takes tens of times as long. A device's
value is written once and repeated for each pod that holds it; the label blocks are kept between renders,
since devices and pods hardly ever change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpuworkshop.exporter import pod_labels
from gpuworkshop.exporter.counters import Counters, default
from gpuworkshop.exporter.devices import Device, Family, Pod
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.sampler import Held, Snapshot
from gpuworkshop.exporter.schema import Metric, Schema

Labels = list[tuple[str, str]]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
UNAVAILABLE = "gpuworkshop_field_unavailable"
_MOST_KEPT = 4096


def labels(device: Device, pod: Pod | None, schema: Schema, hostname: str) -> Labels:
    """The labels of a device's series, in dcgm-exporter's order; without a pod its labels are absent."""
    found = [
        ("gpu", str(device.index)),
        ("UUID", device.uuid),
        ("pci_bus_id", device.pci_bus_id),
        ("device", f"nvidia{device.index}"),
        ("modelName", device.model),
    ]
    if device.instance:
        found += [("GPU_I_PROFILE", device.instance.profile), ("GPU_I_ID", str(device.instance.id))]
    found.append((schema.hostname_label, hostname))
    ours = [(schema.driver_label, device.driver)] if schema.driver_label else []
    attributes: Labels = []
    if pod:
        attributes = [("container", pod.container), ("namespace", pod.namespace), ("pod", pod.pod)]
        attributes += [(name, value) for name, value in (("pod_uid", pod.uid), ("vgpu", pod.vgpu)) if value]
        ours += pod_labels.free(pod.labels, (name for name, _ in (*found, *ours, *attributes)))
    return [*found, *sorted(ours), *attributes]


def block(pairs: Sequence[tuple[str, str]]) -> str:
    """Labels between braces, values escaped; nothing for no labels."""
    if not pairs:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


class Renderer:
    """Renders snapshots in one schema, for one node."""

    def __init__(self, schema: Schema, hostname: str, counters: Counters | None = None) -> None:
        counters = counters or default(schema)
        self.schema = schema if counters.driver_label else replace(schema, driver_label="")
        self._hostname = hostname
        self._counters = counters
        self._fields = {str(metric.field) for metric in counters.metrics}
        self._blocks: dict[tuple[Device, Pod | None], str] = {}

    def render(self, snapshot: Snapshot, own: Sequence[Family] = (), *, stale: bool = False) -> bytes:
        """The body of a scrape, with families of the server's `own`.

        A stale snapshot's values are left out: they are no longer known.
        """
        parts = [] if stale else list(self._dcgm(snapshot.devices))
        told = [family for family in snapshot.families if not (stale and family.momentary)]
        told = [family for family in told if family.name != UNAVAILABLE] + [self._unavailable(told)]
        parts += [_family(family) for family in (*told, *self._own(snapshot), *own) if family.samples]
        return "".join(parts).encode()

    def _dcgm(self, devices: Sequence[Held]) -> Iterator[str]:
        rows = [
            (held.reading.values, [self._block(held.reading.device, pod) for pod in held.pods or (None,)])
            for held in devices
        ]
        for metric in self._counters.metrics:
            if series := list(_series(metric, rows)):
                yield f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.type}\n"
                yield from series

    def _block(self, device: Device, pod: Pod | None) -> str:
        known = self._blocks.get((device, pod))
        if known is None:
            if len(self._blocks) >= _MOST_KEPT:
                self._blocks.clear()
            known = block(labels(device, pod, self.schema, self._hostname))
            self._blocks[device, pod] = known
        return known

    def _unavailable(self, families: Sequence[Family]) -> Family:
        """What was asked for and is not there, as the backends and the counters file have it."""
        found = [sample for each in families if each.name == UNAVAILABLE for sample in each.samples]
        asked = [sample for sample in found if dict(sample[0])["field"] in self._fields]
        left_out = [([("field", name), ("reason", why)], 1.0) for name, why in self._counters.skipped]
        return Family(UNAVAILABLE, "gauge", "1 for a field without a value now.", [*asked, *left_out])

    def _own(self, snapshot: Snapshot) -> list[Family]:
        return [
            Family("gpuworkshop_exporter_info", "gauge", "The schema that this exporter speaks.",
                   [([("schema", self.schema.release)], 1.0)]),
            Family("gpuworkshop_sample_timestamp_seconds", "gauge", "When the GPUs were last read.",
                   [((), snapshot.at)]),
            Family("gpuworkshop_sample_duration_seconds", "gauge", "How long reading them took.",
                   [((), snapshot.duration_s)]),
        ]  # fmt: skip


def _series(metric: Metric, rows: Sequence[tuple[Mapping[Field, float], Sequence[str]]]) -> Iterator[str]:
    for values, blocks in rows:
        value = values.get(metric.field)
        if value is not None:
            text = metric.text(value)
            for labelled in blocks:
                yield f"{metric.name}{labelled} {text}\n"


def _family(family: Family) -> str:
    lines = [f"# HELP {family.name} {family.help}\n# TYPE {family.name} {family.type}\n"]
    lines += [f"{family.name}{block(pairs)} {_number(value)}\n" for pairs, value in family.samples]
    return "".join(lines)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.6f}"
