"""GPUs that are lost, a driver that goes, calls that hang: what is known is shown, the rest has a reason."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import ModuleType

import pytest
from exporter_fake_nvml import ERRORS, FakeGpu, FakeNvml, once

from gpuworkshop.errors import ExporterError
from gpuworkshop.exporter.backends.nvml.backend import NvmlBackend, open_gpus
from gpuworkshop.exporter.backends.nvml.library import Nvml
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.sampler import Sampler

GONE = ["GPU_IS_LOST", "RESET_REQUIRED", "UNINITIALIZED", "DRIVER_NOT_LOADED"]

Open = Callable[[], NvmlBackend]


@pytest.fixture
def module() -> FakeNvml:
    """Two GPUs."""
    return FakeNvml(FakeGpu("GPU-a"), FakeGpu("GPU-b", bus=0x9A))


@pytest.fixture
def clock() -> list[float]:
    return [100.0]


@pytest.fixture
def opened(module: FakeNvml, clock: list[float]) -> Iterator[Open]:
    backends = []

    def start() -> NvmlBackend:
        module.nvmlInit()
        backends.append(NvmlBackend(Nvml(module), clock=lambda: clock[0]))
        return backends[-1]

    yield start
    for backend in backends:
        backend.__exit__()


def uuids(backend: NvmlBackend) -> list[str]:
    return [reading.device.uuid for reading in backend.read(0.0)]


def samples(backend: NvmlBackend, name: str) -> dict[tuple[str, ...], float]:
    """The label values of a family → value."""
    found = [family for family in backend.families() if family.name == name]
    return {tuple(text for _, text in labels): value for family in found for labels, value in family.samples}


def up(backend: NvmlBackend) -> dict[tuple[str, ...], float]:
    return samples(backend, "gpuworkshop_gpu_up")


@pytest.mark.parametrize("error", GONE)
def test_a_lost_gpu_takes_none_along_and_is_found_when_it_returns(
    opened: Open, module: FakeNvml, clock: list[float], error: str
) -> None:
    backend = opened()
    assert uuids(backend) == ["GPU-a", "GPU-b"]
    module.fails = {("", "GPU-a"): error}
    cause = error.lower()
    for _ in range(3):
        assert uuids(backend) == ["GPU-b"]
        absent = samples(backend, "gpuworkshop_field_unavailable")
        reasons = {labels[0]: labels[3] for labels in absent if labels[1:3] == ("0", "GPU-a")}
        assert reasons == {str(field): cause for field in Field}
        assert up(backend) == {("0", "GPU-a"): 0, ("1", "GPU-b"): 1}
    clock[0] += 1.0
    assert uuids(backend) == ["GPU-b"]  # initialised anew, and still lost
    assert module.initialised == 1
    module.fails = {}
    clock[0] += 2.0
    assert uuids(backend) == ["GPU-a", "GPU-b"]
    assert up(backend) == {("0", "GPU-a"): 1, ("1", "GPU-b"): 1}
    backend.read(0.0)
    assert samples(backend, "gpuworkshop_field_unavailable") == {}
    errors = samples(backend, "gpuworkshop_nvml_errors_total")
    assert {labels[1] for labels in errors} == {cause}
    assert module.initialised == module.sets == 1
    assert len(module.lent) == 4


def test_a_gpu_lost_in_the_middle_of_a_reading_is_absent_from_that_reading(
    opened: Open, module: FakeNvml
) -> None:
    backend = opened()
    backend.read(0.0)
    module.fails = {("nvmlGpmSampleGet", "GPU-b"): "GPU_IS_LOST"}
    assert uuids(backend) == ["GPU-a"]
    assert samples(backend, "gpuworkshop_nvml_errors_total") == {("nvmlGpmSampleGet", "gpu_is_lost"): 1}


def test_it_is_tried_less_and_less_often(opened: Open, module: FakeNvml, clock: list[float]) -> None:
    backend = opened()
    module.fails = {("", "GPU-a"): "GPU_IS_LOST"}
    backend.read(0.0)
    tries = []
    for _ in range(200):
        before = module.calls["nvmlInit"]
        clock[0] += 1.0
        backend.read(0.0)
        if module.calls["nvmlInit"] > before:
            tries.append(clock[0] - 100)
    assert tries == [1, 3, 7, 15, 31, 63, 123, 183]


def test_after_a_recovery_the_next_loss_is_tried_soon_again(
    opened: Open, module: FakeNvml, clock: list[float]
) -> None:
    backend = opened()
    for _ in range(3):
        module.fails = {("", "GPU-a"): "GPU_IS_LOST"}
        backend.read(0.0)
        module.fails = {}
        clock[0] += 1.0
        assert uuids(backend) == ["GPU-a", "GPU-b"]


def test_a_gpu_that_falls_off_the_bus_moves_the_others_indices(
    opened: Open, module: FakeNvml, clock: list[float]
) -> None:
    backend = opened()
    backend.read(0.0)
    module.fails = {("", "GPU-a"): "GPU_IS_LOST"}
    backend.read(0.0)
    gone = module.gpus.pop(0)
    module.fails = {}
    clock[0] += 1.0
    assert [(r.device.index, r.device.uuid) for r in backend.read(0.0)] == [(0, "GPU-b")]
    assert up(backend) == {("0", "GPU-b"): 1, ("0", "GPU-a"): 0}
    reasons = {labels[3] for labels in samples(backend, "gpuworkshop_field_unavailable") if "GPU-a" in labels}
    assert reasons == {"gpu_not_found"}
    module.gpus.insert(0, gone)
    clock[0] += 2.0
    assert [(r.device.index, r.device.uuid) for r in backend.read(0.0)] == [(0, "GPU-a"), (1, "GPU-b")]


@pytest.mark.parametrize("shutdown_works", [True, False])
def test_a_driver_that_goes_and_comes_back(
    opened: Open, module: FakeNvml, clock: list[float], shutdown_works: bool
) -> None:
    backend = opened()
    backend.read(0.0)
    module.fails = {("", ""): "DRIVER_NOT_LOADED"}
    assert uuids(backend) == []
    clock[0] += 1.0
    assert uuids(backend) == []
    assert up(backend) == {("0", "GPU-a"): 0, ("1", "GPU-b"): 0}
    module.fails = {} if shutdown_works else {("nvmlShutdown", ""): "UNINITIALIZED"}
    module.driver = "590.1"
    clock[0] += 2.0
    assert [(r.device.uuid, r.device.driver) for r in backend.read(0.0)] == [
        ("GPU-a", "590.1"),
        ("GPU-b", "590.1"),
    ]
    assert list(up(backend).values()) == [1, 1]


def test_a_gpu_that_is_lost_at_the_start_is_told_and_found_later(
    opened: Open, module: FakeNvml, clock: list[float]
) -> None:
    module.fails = {("", "GPU-b"): "GPU_IS_LOST"}
    backend = opened()
    assert uuids(backend) == ["GPU-a"]
    assert up(backend) == {("0", "GPU-a"): 1, ("1", ""): 0}
    module.fails = {("", ""): "DRIVER_NOT_LOADED"}
    clock[0] += 10.0
    assert uuids(backend) == []
    module.fails = {}
    clock[0] += 60.0
    assert uuids(backend) == ["GPU-a", "GPU-b"]
    assert up(backend) == {("0", "GPU-a"): 1, ("1", "GPU-b"): 1}


def test_the_only_gpu_lost_at_the_start_is_looked_for_though_the_driver_goes_too(
    opened: Open, module: FakeNvml, clock: list[float]
) -> None:
    module.gpus.pop()
    module.fails = {("", "GPU-a"): "GPU_IS_LOST"}
    backend = opened()
    module.fails = {("", ""): "DRIVER_NOT_LOADED"}
    clock[0] += 10.0
    assert uuids(backend) == []
    assert up(backend) == {("0", ""): 0}
    module.fails = {}
    clock[0] += 60.0
    assert uuids(backend) == ["GPU-a"]


def test_mig_devices_that_cannot_be_looked_for_do_not_end_the_reading(
    opened: Open, module: FakeNvml, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    backend = opened()
    module.fails = {("nvmlDeviceGetMigMode", "GPU-a"): "UNKNOWN"}
    clock[0] += 10.0
    assert uuids(backend) == ["GPU-a", "GPU-b"]
    assert "GPU 0 cannot be looked at: nvmlDeviceGetMigMode: unknown" in caplog.text


def test_loss_and_return_are_logged_once(
    opened: Open, module: FakeNvml, clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    backend = opened()
    module.fails = {("nvmlDeviceGetPowerUsage", "GPU-a"): "GPU_IS_LOST"}
    for _ in range(3):
        backend.read(0.0)
    module.fails = {}
    clock[0] += 1.0
    backend.read(0.0)
    assert [record.getMessage() for record in caplog.records] == [
        "GPU 0 (GPU-a) is lost: nvmlDeviceGetPowerUsage: gpu_is_lost",
        "GPU 0 (GPU-a) can be read again",
    ]


def test_a_call_that_hangs_makes_the_sampler_stale_and_then_all_goes_on(
    opened: Open, module: FakeNvml
) -> None:
    backend = opened()
    with Sampler(backend, backend, 0.01) as sampler:
        pause = threading.Event()
        module.hangs = {"nvmlDeviceGetPowerUsage": pause}
        assert module.hung.wait(10)
        last = sampler.snapshot
        # What a scrape is answered with meanwhile: the last snapshot, which is found to be old.
        sampler.snapshot = replace(last, taken=last.taken - 6)
        assert sampler.stale_s() > 5
        module.hangs = {}
        pause.set()
        once(lambda: sampler.snapshot.at > last.at)
        assert sampler.stale_s() == 0
        assert len(sampler.snapshot.devices) == 2


def test_a_driver_that_keeps_the_xid_thread_is_not_shut_down_under_it(
    opened: Open,
    module: FakeNvml,
    clock: list[float],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gpuworkshop.exporter.backends.nvml.events._STOP_S", 0.05)
    backend = opened()
    pause = threading.Event()
    module.hangs = {"nvmlEventSetWait_v2": pause}
    assert module.hung.wait(10)
    module.fails = {("", "GPU-a"): "GPU_IS_LOST"}
    backend.read(0.0)
    clock[0] += 1.0
    assert uuids(backend) == ["GPU-b"]
    assert module.calls["nvmlShutdown"] == 0
    assert "does not let go" in caplog.text
    module.hangs, module.fails = {}, {}
    pause.set()
    once(lambda: not [thread for thread in threading.enumerate() if thread.name == "xid-events"])
    clock[0] += 2.0
    assert uuids(backend) == ["GPU-a", "GPU-b"]


@pytest.mark.parametrize(
    ("error", "says", "todo"),
    [
        ("LIBRARY_NOT_FOUND", "nvmlInit says library not found", "install the NVIDIA driver"),
        ("DRIVER_NOT_LOADED", "nvmlInit says driver not loaded", "load the driver"),
        ("NO_PERMISSION", "nvmlInit says no permission", "/dev/nvidiactl"),
        ("UNKNOWN", "nvmlInit says unknown", "see that nvidia-smi answers"),
    ],
)
def test_a_library_that_cannot_be_used_is_said_at_the_start(
    module: FakeNvml, monkeypatch: pytest.MonkeyPatch, error: str, says: str, todo: str
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    module.fails = {("nvmlInit", ""): error}
    with pytest.raises(ExporterError) as raised:
        open_gpus()
    assert says in raised.value.seen
    assert todo in raised.value.todo


def test_the_binding_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(ExporterError, match="without the package nvidia-ml-py") as raised:
        open_gpus()
    assert "gpuworkshop[exporter]" in raised.value.todo


def test_a_machine_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    with pytest.raises(ExporterError, match="knows no GPU"):
        open_gpus()


def test_a_driver_that_fails_after_its_initialisation(
    module: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    module.fails = {("nvmlDeviceGetCount", ""): "UNKNOWN"}
    with pytest.raises(ExporterError, match="nvmlDeviceGetCount says unknown"):
        open_gpus()


def test_the_machines_gpus_are_opened(module: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", module)
    with open_gpus() as backend:
        assert uuids(backend) == ["GPU-a", "GPU-b"]
    assert not [thread for thread in threading.enumerate() if thread.name == "xid-events"]


def test_an_error_that_the_binding_does_not_name_keeps_its_number() -> None:
    module = ModuleType("pynvml")
    vars(module).update(NVML_SUCCESS=0, NVML_ERROR_NOT_SUPPORTED=ERRORS["NOT_SUPPORTED"])
    nvml = Nvml(module)
    assert [nvml.cause(code) for code in (0, 3, 77)] == ["", "not_supported", "error_77"]
