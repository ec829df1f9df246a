"""The text that scrapes read: names, units and types of each release, labels, values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from exporter_process import write_gpus
from prometheus_client.parser import text_string_to_metric_families

from gpuworkshop.exporter.backends.replay import ReplayBackend
from gpuworkshop.exporter.counters import default
from gpuworkshop.exporter.devices import Device, Instance, Pod, Reading
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.rendering import Renderer
from gpuworkshop.exporter.sampler import Held, Snapshot, sample
from gpuworkshop.exporter.schema import SCHEMAS

SAMPLE = (Path(__file__).parent.parent / "data" / "exporter-dcgm-3.1.prom").read_text()
DEVICE = Device(0, "GPU-1", "NVIDIA H200", "00000000:8D:00.0", "580")
LINE = re.compile(r"(\w+)\{(.*)\} (\S+)")


def render(*devices: Held, schema: str = "4.8.4", stale: bool = False, extended: bool = False) -> str:
    snapshot = Snapshot(1.5, 0.0, 0.25, devices, [])
    return (
        Renderer(SCHEMAS[schema], "node-1", default(SCHEMAS[schema], extended=extended))
        .render(snapshot, stale=stale)
        .decode()
    )


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("DCGM_")]


def label_names(line: str) -> list[str]:
    return re.findall(r'(\w+)="', line)


@pytest.fixture
def simulated(tmp_path: Path) -> Snapshot:
    path = write_gpus(tmp_path / "gpus.yaml", [{"index": 0, "pods": [{"pod": "a", "load": "matmul"}]}])
    backend = ReplayBackend(path, "node-1")
    return sample(backend, backend, 1_720_000_000)


def families(snapshot: Snapshot, schema: str, *, extended: bool = False) -> dict[str, tuple[str, float]]:
    """Name → type and value, of the names that a person would type."""
    text = (
        Renderer(SCHEMAS[schema], "node-1", default(SCHEMAS[schema], extended=extended))
        .render(snapshot)
        .decode()
    )
    types = dict(re.findall(r"# TYPE (DCGM_\w+) (\w+)", text))
    return {name: (types[name], float(value)) for name, _, value in map(match, lines(text))}


def match(line: str) -> tuple[str, str, str]:
    found = LINE.fullmatch(line)
    assert found, line
    return found[1], found[2], found[3]


def test_names_types_and_help_are_those_of_a_real_exporter(simulated: Snapshot) -> None:
    mine = families(simulated, "4.8.2")
    real = dict(re.findall(r"# TYPE (\w+) (\w+)", SAMPLE))
    assert {name: mine[name][0] for name in real} == real
    # What release 3.1 did not have by default, or this GPU of it could not tell.
    assert mine.keys() - real.keys() == {"DCGM_FI_DEV_MEMORY_TEMP"}
    text = Renderer(SCHEMAS["4.8.2"], "node-1").render(simulated).decode()
    assert "# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n" in SAMPLE
    assert "# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).\n" in text


def test_labels_stand_in_the_order_of_a_real_exporter(simulated: Snapshot) -> None:
    text = Renderer(SCHEMAS["4.8.2"], "node-1").render(simulated).decode()
    mine = {tuple(label_names(line)) for line in lines(text)}
    (real,) = {tuple(label_names(line)) for line in lines(SAMPLE)}
    assert mine == {(*real[:2], "pci_bus_id", *real[2:])}


def test_values_are_written_as_a_real_exporter_writes_them(simulated: Snapshot) -> None:
    text = Renderer(SCHEMAS["4.8.2"], "node-1").render(simulated).decode()
    shape = {name: re.sub(r"\d+", "9", value) for name, _, value in map(match, lines(text))}
    for name, _, value in map(match, lines(SAMPLE)):
        assert shape[name] == re.sub(r"\d+", "9", value), name


def test_the_default_fields_of_each_release() -> None:
    names = {
        release: {metric.name.removeprefix("DCGM_FI_") for metric in schema.metrics}
        for release, schema in SCHEMAS.items()
    }
    assert names["4.8.2"] == names["4.8.4"]
    assert len(names["4.8.4"]) == 25  # the 26th row is the driver's version, a label
    assert names["4.8.4"] & names["4.9"] == {
        "DEV_VGPU_LICENSE_STATUS",
        "PROF_PCIE_TX_BYTES",
        "PROF_PCIE_RX_BYTES",
    }
    assert "DEV_FB_CAPACITY_BYTES" in names["4.9"]
    assert len(names["4.9"]) == 26


def test_units_change_together_with_names(simulated: Snapshot) -> None:
    old, new = families(simulated, "4.8.4"), families(simulated, "4.9")
    for before, after, factor in (
        ("DEV_SM_CLOCK", "DEV_SM_CLOCK_HERTZ", 1e6),
        ("DEV_MEM_CLOCK", "DEV_MEMORY_CLOCK_HERTZ", 1e6),
        ("DEV_GPU_TEMP", "DEV_GPU_TEMP_CELSIUS", 1),
        ("DEV_POWER_USAGE", "DEV_BOARD_POWER_WATTS", 1),
        ("DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_GPU_ENERGY_JOULES_TOTAL", 1e-3),
        ("DEV_GPU_UTIL", "DEV_GPU_UTIL_RATIO", 0.01),
        ("DEV_FB_USED", "DEV_FB_USED_BYTES", 2**20),
        ("PROF_PIPE_TENSOR_ACTIVE", "PROF_TENSOR_UTIL_RATIO", 1),
        ("PROF_DRAM_ACTIVE", "PROF_DRAM_UTIL_RATIO", 1),
        ("PROF_PCIE_TX_BYTES", "PROF_PCIE_TX_BYTES", 1),
    ):
        value, scaled = old[f"DCGM_FI_{before}"][1], new[f"DCGM_FI_{after}"][1]
        assert value > 0
        assert scaled == pytest.approx(value * factor, rel=0.01), before
    assert old["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"][0] == "counter"
    assert new["DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND"][0] == "gauge"
    assert new["DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL"][0] == "counter"


@pytest.mark.parametrize(
    ("schema", "node", "driver"),
    [
        ("4.8.2", "Hostname", "DCGM_FI_DRIVER_VERSION"),
        ("4.8.4", "hostname", "DCGM_FI_DRIVER_VERSION"),
        ("4.9", "hostname", "DCGM_FI_SYSTEM_DRIVER_VERSION"),
    ],
)
def test_the_labels_of_each_release(schema: str, node: str, driver: str) -> None:
    device = Device(2, "GPU-1", "NVIDIA H200", "00000000:8D:00.0", "580", Instance("1g.18gb", 3))
    text = render(Held(Reading(device, {Field.POWER: 80.5}), [Pod("ml", "a", "main")]), schema=schema)
    (line,) = lines(text)
    assert line.split("{")[1] == (
        'gpu="2",UUID="GPU-1",pci_bus_id="00000000:8D:00.0",device="nvidia2",modelName="NVIDIA H200",'
        f'GPU_I_PROFILE="1g.18gb",GPU_I_ID="3",{node}="node-1",{driver}="580",'
        'container="main",namespace="ml",pod="a"} 80.500000'
    )


def test_without_a_pod_its_labels_are_absent() -> None:
    (line,) = lines(render(Held(Reading(DEVICE, {Field.XID: 0}), [])))
    assert not {"pod", "namespace", "container"} & set(label_names(line))


def test_each_pod_of_a_shared_gpu_has_the_devices_figure() -> None:
    pods = [Pod("ml", "a", "main"), Pod("ml", "b", "main")]
    text = render(Held(Reading(DEVICE, {Field.GPU_UTIL: 0.29, Field.POWER: 7}), pods))
    assert [(re.findall('pod="(.)"', line), line.split()[-1]) for line in lines(text)] == [
        (["a"], "7.000000"), (["b"], "7.000000"), (["a"], "29"), (["b"], "29"),
    ]  # fmt: skip


def test_an_unknown_value_has_no_line_and_no_header() -> None:
    text = render(Held(Reading(DEVICE, {Field.GPU_UTIL: 0.5}), []))
    assert "POWER" not in text
    assert len(lines(text)) == 1


def test_label_values_survive_whatever_is_in_them() -> None:
    odd = 'a "quoted" \\ back\\slash\nnew line, größer 🚀}'
    text = render(Held(Reading(DEVICE, {Field.POWER: 1}), [Pod(odd, "a\\", "\n")]))
    (family,) = [f for f in text_string_to_metric_families(text) if f.name.startswith("DCGM")]
    labels = family.samples[0].labels
    assert (labels["namespace"], labels["pod"], labels["container"]) == (odd, "a\\", "\n")


def test_a_stale_snapshot_shows_no_values_but_says_when_it_was_taken() -> None:
    text = render(Held(Reading(DEVICE, {Field.POWER: 1}), []), stale=True)
    assert not lines(text)
    assert "gpuworkshop_sample_timestamp_seconds 1.500000\n" in text


def test_extended_metrics_come_only_when_asked_for(simulated: Snapshot) -> None:
    more = families(simulated, "4.8.4", extended=True).keys() - families(simulated, "4.8.4").keys()
    assert {name.removeprefix("DCGM_FI_PROF_") for name in more} == {
        "SM_ACTIVE", "SM_OCCUPANCY", "PIPE_FP64_ACTIVE", "PIPE_FP32_ACTIVE", "PIPE_FP16_ACTIVE",
    }  # fmt: skip
