"""XID errors: the last one as DCGM has it, and beside it how often and when, which a gauge cannot tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from exporter_fake_nvml import FakeGpu, FakeMig, FakeNvml, once

from gpuworkshop.exporter.backends.nvml.backend import NvmlBackend
from gpuworkshop.exporter.backends.nvml.events import XidLog
from gpuworkshop.exporter.backends.nvml.library import Nvml
from gpuworkshop.exporter.fields import Field

Open = Callable[[], NvmlBackend]

TOTAL, TIME = "gpuworkshop_xid_errors_total", "gpuworkshop_xid_last_timestamp_seconds"


@pytest.fixture
def module() -> FakeNvml:
    """A GPU, and one that is cut in two."""
    migs: list[FakeMig | None] = [FakeMig("MIG-3", 3), FakeMig("MIG-5", 5)]
    cut = FakeGpu("GPU-b", mig_mode=1, migs=migs, gpm_on_migs={3: {}, 5: {}})
    return FakeNvml(FakeGpu("GPU-a"), cut)


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


def last(backend: NvmlBackend) -> list[float | None]:
    """The last XID of each row."""
    return [reading.values.get(Field.XID) for reading in backend.read(0.0)]


def counts(backend: NvmlBackend) -> dict[tuple[str, str], float]:
    """GPU and XID → how often."""
    found = {}
    for family in backend.families():
        if family.name == TOTAL:
            for labels, value in family.samples:
                found[dict(labels)["gpu"], dict(labels)["xid"]] = value
    return found


def test_without_an_xid_the_last_one_is_0_and_none_is_counted(opened: Open) -> None:
    backend = opened()
    assert last(backend) == [0, 0, 0]
    assert not {TOTAL, TIME} & {family.name for family in backend.families()}


def test_xids_are_counted_and_the_last_one_shown(opened: Open, module: FakeNvml) -> None:
    backend = opened()
    for xid in (31, 13, 31):
        module.xid(0, xid)
    once(lambda: counts(backend) == {("0", "31"): 2, ("0", "13"): 1})
    assert last(backend) == [31, 0, 0]
    times = next(family for family in backend.families() if family.name == TIME)
    assert all(value > 1.6e9 for _, value in times.samples)


def test_an_xid_of_a_mig_instance_is_that_instances(opened: Open, module: FakeNvml) -> None:
    backend = opened()
    module.xid(1, 31, instance=5)
    once(lambda: counts(backend) == {("1", "31"): 1})
    assert last(backend) == [0, 0, 31]
    module.xid(1, 79)
    once(lambda: counts(backend) == {("1", "31"): 1, ("1", "79"): 1})
    assert last(backend) == [0, 79, 79]


def test_an_event_of_another_kind_or_device_is_left_aside(opened: Open, module: FakeNvml) -> None:
    backend = opened()
    module.xid(9, 31)
    module.xid(0, 45)
    once(lambda: bool(counts(backend)))
    assert counts(backend) == {("0", "45"): 1}


def test_a_gpu_that_tells_no_events_has_no_xid_rather_than_0(opened: Open, module: FakeNvml) -> None:
    module.fails = {("nvmlDeviceRegisterEvents", "GPU-a"): "NOT_SUPPORTED"}
    backend = opened()
    assert last(backend) == [None, 0, 0]
    absent = next(family for family in backend.families() if family.name == "gpuworkshop_field_unavailable")
    reasons = [dict(labels) for labels, _ in absent.samples if ("field", "last_xid") in labels]
    assert reasons == [{"field": "last_xid", "gpu": "0", "UUID": "GPU-a", "reason": "not_supported"}]


def test_a_driver_without_event_sets_has_no_xids(opened: Open, module: FakeNvml) -> None:
    module.fails = {("nvmlEventSetCreate", ""): "NOT_SUPPORTED"}
    assert last(opened()) == [None, None, None]


def test_counts_outlive_a_lost_gpu(opened: Open, module: FakeNvml, clock: list[float]) -> None:
    backend = opened()
    module.xid(0, 79)
    once(lambda: bool(counts(backend)))
    module.fails = {("", "GPU-a"): "GPU_IS_LOST"}
    backend.read(0.0)
    assert counts(backend) == {("0", "79"): 1}
    module.fails = {}
    clock[0] += 1.0
    assert last(backend) == [79, 0, 0]
    module.xid(0, 79)
    once(lambda: counts(backend) == {("0", "79"): 2})


def test_a_wait_that_fails_is_counted_and_not_tried_in_a_hurry(opened: Open, module: FakeNvml) -> None:
    backend = opened()
    assert module.waiting.wait(10)
    module.fails = {("nvmlEventSetWait_v2", ""): "GPU_IS_LOST"}

    def errors() -> list[float]:
        families = backend.families()
        counted = [family for family in families if family.name == "gpuworkshop_nvml_errors_total"]
        return [value for family in counted for _, value in family.samples]

    once(lambda: bool(errors()))
    assert errors() == [1]


def test_the_log_keeps_the_time_of_the_last_one_of_each() -> None:
    now = [10.0]
    log = XidLog(lambda: now[0])
    log.add("GPU-a", None, 31)
    now[0] = 5.0  # the clock was set back
    log.add("GPU-a", 2, 13)
    log.add("GPU-b", None, 79)
    assert log.totals() == [("GPU-a", 31, 1, 10.0), ("GPU-a", 13, 1, 5.0), ("GPU-b", 79, 1, 5.0)]
    assert [log.last("GPU-a"), log.last("GPU-a", 2), log.last("GPU-a", 3)] == [13, 13, 31]
    assert log.last("GPU-c") == 0
