"""What a GPU and a MIG instance read by NVML: each field in its base unit, or the reason for having none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from exporter_fake_nvml import FakeGpu, FakeMig, FakeNvml

from gpuworkshop.exporter.backends.nvml.backend import LOOK_S, NvmlBackend
from gpuworkshop.exporter.backends.nvml.library import Nvml
from gpuworkshop.exporter.devices import Device, Instance
from gpuworkshop.exporter.fields import NOT_ON_MIG, Field

H200 = FakeGpu("GPU-0")
PROFILING = {
    Field.GR_ENGINE, Field.SM_ACTIVE, Field.SM_OCCUPANCY, Field.TENSOR, Field.DRAM, Field.FP64, Field.FP32,
    Field.FP16, Field.PCIE_TX, Field.PCIE_RX, Field.NVLINK,
}  # fmt: skip

Open = Callable[..., NvmlBackend]


@pytest.fixture
def clock() -> list[float]:
    """The monotonic clock, set by hand."""
    return [100.0]


@pytest.fixture
def opened(clock: list[float]) -> Iterator[Open]:
    """Opens a backend of a fake library, and ends it after the test."""
    backends = []

    def start(module: FakeNvml) -> NvmlBackend:
        module.nvmlInit()
        backends.append(NvmlBackend(Nvml(module), clock=lambda: clock[0]))
        return backends[-1]

    yield start
    for backend in backends:
        backend.__exit__()


def values(backend: NvmlBackend, place: int = 0) -> dict[Field, float]:
    return dict(backend.read(0.0)[place].values)


def missing(backend: NvmlBackend) -> dict[tuple[str, str, str], str]:
    """GPU, instance and field → the reason."""
    found = {}
    for family in backend.families():
        if family.name == "gpuworkshop_field_unavailable":
            for pairs, value in family.samples:
                labels = dict(pairs)
                assert value == 1
                where = (labels["gpu"], labels.get("GPU_I_ID", ""), labels["field"])
                assert where not in found
                found[where] = labels["reason"]
    return found


def test_every_field_of_an_h200_in_its_base_unit(opened: Open) -> None:
    backend = opened(FakeNvml(H200))
    backend.read(0.0)
    assert values(backend) == pytest.approx(
        {
            Field.SM_CLOCK: 1980e6,
            Field.MEMORY_CLOCK: 3201e6,
            Field.MEMORY_TEMP: 35,
            Field.GPU_TEMP: 61,
            Field.POWER: 690.123,
            Field.ENERGY: 3431.092,
            Field.PCIE_REPLAY: 7,
            Field.GPU_UTIL: 1,
            Field.MEM_COPY_UTIL: 0.87,
            Field.ENC_UTIL: 0.03,
            Field.DEC_UTIL: 0.04,
            Field.XID: 0,
            Field.FB_FREE: (143_771 - 615 - 500) * 2**20,
            Field.FB_USED: 615 * 2**20,
            Field.FB_RESERVED: 500 * 2**20,
            Field.FB_CAPACITY: 143_771 * 2**20,
            Field.NVLINK: 7 * 2**20,
            Field.VGPU_LICENSE: 0,
            Field.ROWS_UNCORRECTABLE: 1,
            Field.ROWS_CORRECTABLE: 2,
            Field.ROW_REMAP_FAILED: 0,
            Field.GR_ENGINE: 0.999,
            Field.SM_ACTIVE: 0.985,
            Field.SM_OCCUPANCY: 0.796,
            Field.TENSOR: 0.936,
            Field.DRAM: 0.4,
            Field.FP64: 0,
            Field.FP32: 0.769,
            Field.FP16: 0,
            Field.PCIE_TX: 1.5 * 2**20,
            Field.PCIE_RX: 2 * 2**20,
        }
    )
    assert missing(backend) == {}


def test_the_device_is_named_as_dcgm_names_it(opened: Open) -> None:
    device = opened(FakeNvml(H200)).read(0.0)[0].device
    assert device == Device(0, "GPU-0", "NVIDIA H200", "00000000:8D:00.0", "580.159.03")


def test_profiling_needs_two_samples_so_the_first_reading_has_none(opened: Open) -> None:
    backend = opened(FakeNvml(H200))
    assert not PROFILING & set(values(backend))
    assert missing(backend) == {("0", "", str(field)): "first_sample" for field in PROFILING}
    assert set(values(backend)) >= PROFILING
    assert missing(backend) == {}


def test_a_figure_that_is_no_number_yet_is_absent_until_it_is_one(opened: Open) -> None:
    gpu = FakeGpu("GPU-0")
    gpu.gpm[10] = float("nan")
    backend = opened(FakeNvml(gpu))
    backend.read(0.0)
    assert Field.DRAM not in values(backend)
    assert missing(backend) == {("0", "", "dram_active_ratio"): "no_number"}
    gpu.gpm[10] = 40.0
    assert values(backend)[Field.DRAM] == pytest.approx(0.4)


@pytest.mark.parametrize("part", [60, 61])
def test_half_of_the_nvlink_traffic_is_not_passed_off_as_all(opened: Open, part: int) -> None:
    gpu = FakeGpu("GPU-0")
    gpu.gpm[part] = "NOT_SUPPORTED"
    backend = opened(FakeNvml(gpu))
    backend.read(0.0)
    assert Field.NVLINK not in values(backend)
    assert missing(backend) == {("0", "", "nvlink_bytes_per_second"): "not_supported"}


def test_before_hopper_profiling_is_absent_and_asked_for_once(opened: Open) -> None:
    module = FakeNvml(FakeGpu("GPU-0", "NVIDIA A10G", hopper=False, mig_mode=None))
    backend = opened(module)
    for _ in range(3):
        assert not PROFILING & set(values(backend))
    assert missing(backend) == {("0", "", str(field)): "before_hopper" for field in PROFILING}
    assert module.calls["nvmlGpmQueryDeviceSupport"] == 1
    assert module.lent == set()


def test_a_binding_without_profiling_functions_is_told_so(opened: Open) -> None:
    module = FakeNvml(H200)
    module.missing = {"nvmlGpmQueryDeviceSupport"}
    backend = opened(module)
    backend.read(0.0)
    assert missing(backend)["0", "", "tensor_active_ratio"] == "function_not_found"


def test_what_a_gpu_does_not_have_is_asked_for_once_and_is_no_error(opened: Open) -> None:
    gpu = FakeGpu("GPU-0")
    del gpu.fields[82]
    module = FakeNvml(gpu)
    module.fails = {("nvmlDeviceGetEncoderUtilization", ""): "NOT_SUPPORTED"}
    backend = opened(module)
    for _ in range(3):
        found = values(backend)
        assert Field.ENC_UTIL not in found
        assert Field.MEMORY_TEMP not in found
        assert found[Field.ROWS_CORRECTABLE] == 2
    assert module.calls["nvmlDeviceGetEncoderUtilization"] == 1
    expected = {("0", "", "encoder_util_ratio"), ("0", "", "memory_temp_celsius")}
    assert missing(backend) == dict.fromkeys(expected, "not_supported")
    assert "gpuworkshop_nvml_errors_total" not in {family.name for family in backend.families()}


def test_a_call_that_fails_now_and_then_is_tried_again(opened: Open) -> None:
    module = FakeNvml(H200)
    backend = opened(module)
    module.fails = {("nvmlDeviceGetPowerUsage", ""): "UNKNOWN"}
    assert Field.POWER not in values(backend)
    assert missing(backend)["0", "", "power_watts"] == "unknown"
    module.fails = {}
    assert values(backend)[Field.POWER] == pytest.approx(690.123)
    errors = [family for family in backend.families() if family.name == "gpuworkshop_nvml_errors_total"]
    assert errors[0].type == "counter"
    assert errors[0].samples == [([("call", "nvmlDeviceGetPowerUsage"), ("cause", "unknown")], 1.0)]


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        ({"utilization": (101, 0)}, Field.GPU_UTIL),
        ({"utilization": (0, 4_000_000_000)}, Field.MEM_COPY_UTIL),
        ({"temperature": 201}, Field.GPU_TEMP),
        ({"fields": {82: 255}}, Field.MEMORY_TEMP),
        ({"gpm": {1: 180.0}}, Field.GR_ENGINE),
        ({"gpm": {20: -1.0}}, Field.PCIE_TX),
        ({"gpm": {20: float("inf")}}, Field.PCIE_TX),
    ],
)
def test_an_impossible_value_is_dropped(opened: Open, broken: dict[str, Any], field: Field) -> None:
    backend = opened(FakeNvml(FakeGpu("GPU-0", **broken)))
    backend.read(0.0)
    assert field not in values(backend)
    assert missing(backend)["0", "", str(field)] == "impossible_value"


@pytest.mark.parametrize(("percent", "ratio"), [(100.0, 1.0), (100.3, 1.0), (99.5, 0.995)])
def test_a_ratio_a_little_over_one_is_one(opened: Open, percent: float, ratio: float) -> None:
    backend = opened(FakeNvml(FakeGpu("GPU-0", gpm={10: percent})))
    backend.read(0.0)
    assert values(backend)[Field.DRAM] == pytest.approx(ratio)


def test_a_reading_is_cheap(opened: Open) -> None:
    module = FakeNvml(H200)
    backend = opened(module)
    backend.read(0.0)
    before = module.calls.copy()
    backend.read(0.0)
    asked = module.calls - before
    asked.pop("nvmlEventSetWait_v2", None)  # the other thread's
    assert asked["nvmlGpmMetricsGet"] == asked["nvmlGpmSampleGet"] == asked["nvmlDeviceGetFieldValues"] == 1
    assert asked.total() == 14
    assert "nvmlDeviceGetPcieThroughput" not in module.calls  # it blocks for 20 ms


@pytest.mark.parametrize(
    "gpu",
    [
        H200,
        FakeGpu("GPU-0", hopper=False, mig_mode=None, fields={}),
        FakeGpu("GPU-0", mig_mode=1),
        FakeGpu("GPU-0", mig_mode=1, gpm_on_migs={3: {}}, migs=[FakeMig("MIG-a", 3)]),
    ],
    ids=["h200", "old", "mig-mode-without-instances", "mig"],
)
def test_every_field_has_a_value_or_a_reason(opened: Open, gpu: FakeGpu) -> None:
    backend = opened(FakeNvml(gpu))
    for _ in range(3):
        found = {str(field) for field in values(backend)}
        reasons = {field for _, _, field in missing(backend)}
        assert not found & reasons
        assert found | reasons == {str(field) for field in Field}


@pytest.fixture
def cut() -> FakeGpu:
    """Instance 3 with two compute instances, a place that is empty, and instance 5."""
    migs = [
        FakeMig("MIG-a", 3, "NVIDIA H200 MIG 1c.2g.35gb", (32 << 30, 2 << 30, 0)),
        FakeMig("MIG-b", 3, "NVIDIA H200 MIG 1c.2g.35gb", (32 << 30, 2 << 30, 0)),
        None,
        FakeMig("MIG-c", 5),
    ]
    figures: dict[int, dict[int, float | str]] = {3: {1: 50.0, 5: 25.0}, 5: {1: 75.0, 20: "NOT_SUPPORTED"}}
    return FakeGpu("GPU-1", mig_mode=1, migs=list(migs), gpm_on_migs=figures)


def test_each_mig_instance_has_memory_and_profiling_of_its_own(opened: Open, cut: FakeGpu) -> None:
    backend = opened(FakeNvml(H200, cut))
    backend.read(0.0)
    whole, first, second = backend.read(0.0)
    assert whole.device.instance is None
    assert first.device.instance == Instance("2g.35gb", 3)
    assert second.device.instance == Instance("1g.18gb", 5)
    assert {first.device.uuid, second.device.uuid} == {"GPU-1"}
    assert first.values[Field.FB_USED] == 2 << 30
    assert second.values[Field.FB_CAPACITY] == 16 << 30
    assert (first.values[Field.GR_ENGINE], second.values[Field.GR_ENGINE]) == (0.5, 0.75)
    assert first.values[Field.TENSOR] == 0.25
    # The board's own are the same in each.
    assert first.values[Field.POWER] == second.values[Field.POWER] == pytest.approx(690.123)
    assert not NOT_ON_MIG & (first.values.keys() | second.values.keys())
    assert missing(backend)["1", "3", "gpu_util_ratio"] == "not_on_mig"
    assert missing(backend)["1", "5", "pcie_sent_bytes_per_second"] == "not_supported"


def test_a_mig_device_is_traced_to_its_gpu_and_instance(opened: Open, cut: FakeGpu) -> None:
    backend = opened(FakeNvml(H200, cut))
    assert backend.mig_parent("MIG-a") == ("GPU-1", 3)
    assert backend.mig_parent("MIG-b") == ("GPU-1", 3)
    assert backend.mig_parent("MIG-c") == ("GPU-1", 5)
    assert backend.mig_parent("MIG-x") is None
    assert backend.mig_parent("GPU-1") is None


@pytest.mark.parametrize(
    ("memory_mib", "profile"), [(16384, "1g.18gb"), (33280, "1g.35gb"), (143_771, "1g.141gb")]
)
def test_a_driver_that_does_not_tell_the_profile(opened: Open, memory_mib: int, profile: str) -> None:
    mig = FakeMig("MIG-a", 3, "NVIDIA H200", (memory_mib << 20, 0, 0))
    backend = opened(FakeNvml(FakeGpu("GPU-0", mig_mode=1, migs=[mig], gpm_on_migs={3: {}})))
    assert backend.read(0.0)[0].device.instance == Instance(profile, 3)


def test_mig_devices_that_come_and_go_are_found(opened: Open, clock: list[float], cut: FakeGpu) -> None:
    gpu = FakeGpu("GPU-1")
    module = FakeNvml(gpu)
    backend = opened(module)
    backend.read(0.0)
    gpu.mig_mode, gpu.migs, gpu.gpm_on_migs = 1, cut.migs, cut.gpm_on_migs
    assert backend.read(0.0)[0].device.instance is None
    clock[0] += LOOK_S
    backend.read(0.0)
    instances = [reading.device.instance for reading in backend.read(0.0)]
    assert instances == [Instance("2g.35gb", 3), Instance("1g.18gb", 5)]
    assert backend.mig_parent("MIG-c") == ("GPU-1", 5)
    assert len(module.lent) == 4
    gpu.mig_mode, gpu.migs = 0, []
    clock[0] += LOOK_S
    assert [reading.device.instance for reading in backend.read(0.0)] == [None]
    assert backend.mig_parent("MIG-c") is None
    assert len(module.lent) == 2  # the instances' samples were freed
    assert module.initialised == 1


def test_a_gpu_that_stays_as_it_is_keeps_its_samples(opened: Open, clock: list[float], cut: FakeGpu) -> None:
    backend = opened(FakeNvml(H200, cut))
    backend.read(0.0)
    clock[0] += LOOK_S
    assert all(Field.GR_ENGINE in reading.values for reading in backend.read(0.0))


def test_who_holds_a_gpu_is_not_for_the_gpu_to_say(opened: Open) -> None:
    backend = opened(FakeNvml(H200))
    assert backend.pods(backend.read(0.0)[0].device) == ()
