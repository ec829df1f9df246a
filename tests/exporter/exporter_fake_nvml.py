"""NVIDIA's binding as a test double: the functions and structures that the exporter calls, with GPUs at will.

Handles are pointers and structures are ctypes', as in the real one. A GPU's answers stand in plain
attributes; `fails` makes a function fail, for one GPU or for all, and `hangs` makes it wait.
"""
# ruff: noqa: N802 - the names are NVIDIA's

from __future__ import annotations

import ctypes
import queue
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

_FIRST, _STRIDE = 0x1000, 0x100

ERRORS = {
    "UNINITIALIZED": 1,
    "INVALID_ARGUMENT": 2,
    "NOT_SUPPORTED": 3,
    "NO_PERMISSION": 4,
    "NOT_FOUND": 6,
    "DRIVER_NOT_LOADED": 9,
    "TIMEOUT": 10,
    "LIBRARY_NOT_FOUND": 12,
    "GPU_IS_LOST": 15,
    "RESET_REQUIRED": 16,
    "UNKNOWN": 999,
}


class NVMLError(Exception):
    """As in the binding: an error with its number."""

    def __init__(self, value: int) -> None:
        super().__init__(f"error {value}")
        self.value = value


class Opaque(ctypes.Structure):
    """What a handle points to."""


class Metric(ctypes.Structure):
    _fields_ = (
        ("metricId", ctypes.c_uint),
        ("nvmlReturn", ctypes.c_uint),
        ("value", ctypes.c_double),
    )


class Request(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("numMetrics", ctypes.c_uint),
        ("sample1", ctypes.POINTER(Opaque)),
        ("sample2", ctypes.POINTER(Opaque)),
        ("metrics", Metric * 64),
    )


@dataclass
class FakeMig:
    """A MIG device: a compute instance of a GPU instance."""

    uuid: str
    instance: int
    name: str = "NVIDIA H200 MIG 1g.18gb"
    memory: tuple[int, int, int] = (16 << 30, 1 << 30, 0)  # total, used, reserved


@dataclass
class FakeGpu:
    """A GPU's answers."""

    uuid: str
    name: str = "NVIDIA H200"
    bus: int = 0x8D
    power_mw: int = 690_123
    energy_mj: int = 3_431_092
    temperature: int = 61
    utilization: tuple[int, int] = (100, 87)
    memory: tuple[int, int, int] = (143_771 << 20, 615 << 20, 500 << 20)
    fields: dict[int, float | str] = field(default_factory=lambda: {82: 35, 143: 1, 142: 2, 145: 0})
    hopper: bool = True
    gpm: dict[int, float | str] = field(
        default_factory=lambda: {
            1: 99.9, 2: 98.5, 3: 79.6, 5: 93.6, 10: 40.0, 11: 0.0, 12: 76.9, 13: 0.0,
            20: 1.5, 21: 2.0, 60: 3.0, 61: 4.0,
        }
    )  # fmt: skip
    gpm_on_migs: dict[int, dict[int, float | str]] = field(default_factory=dict)
    mig_mode: int | None = 0  # None: not supported
    migs: list[FakeMig | None] = field(default_factory=list)  # None: a place that is empty


class FakeNvml:
    """The module. `calls` counts the calls of each function, `lent` the samples that were not freed."""

    NVMLError = NVMLError
    NVML_SUCCESS = 0
    NVML_GPM_METRICS_GET_VERSION = 1
    c_nvmlGpmMetricsGet_t = Request  # noqa: N815

    def __init__(self, *gpus: FakeGpu, driver: str = "580.159.03") -> None:
        self.gpus: list[FakeGpu] = list(gpus)
        self.driver = driver
        self.initialised = 0
        self.calls: Counter[str] = Counter()
        self.fails: dict[tuple[str, str], str] = {}  # (function or "", uuid or "") → error
        self.hangs: dict[str, threading.Event] = {}
        self.hung = threading.Event()
        self.events: queue.Queue[Any] = queue.Queue()
        self.waiting = threading.Event()
        self.lent: set[int] = set()
        self.sets = 0
        self.missing: set[str] = set()
        self.sampled: dict[int, tuple[FakeGpu, int | None] | None] = {}
        self._next = 1 << 20
        for name, number in ERRORS.items():
            setattr(self, f"NVML_ERROR_{name}", number)

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if not name.startswith("nvml"):
            return found
        if name in self.missing:
            raise AttributeError(name)

        def call(*arguments: Any) -> Any:
            self.calls[name] += 1
            if pause := self.hangs.get(name):
                self.hung.set()
                pause.wait(30)
            self._check(name, arguments)
            return found(*arguments)

        return call

    def xid(self, index: int, xid: int, instance: int = 0xFFFFFFFF) -> None:
        """Let an XID happen."""
        self.events.put(
            SimpleNamespace(device=_handle(index), eventType=8, eventData=xid, gpuInstanceId=instance)
        )

    def nvmlInit(self) -> None:
        self.initialised += 1

    def nvmlShutdown(self) -> None:
        self.initialised -= 1

    def nvmlSystemGetDriverVersion(self) -> str:
        return self.driver

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        self._check("nvmlDeviceGetHandleByIndex", (_handle(index),))
        return _handle(index)

    def nvmlDeviceGetUUID(self, handle: Any) -> str:
        return self._device(handle).uuid

    def nvmlDeviceGetName(self, handle: Any) -> str:
        return self._device(handle).name

    def nvmlDeviceGetPciInfo(self, handle: Any) -> Any:
        return SimpleNamespace(domain=0, bus=self._gpu(handle).bus, device=0)

    def nvmlDeviceGetClockInfo(self, _: Any, clock: int) -> int:
        return {1: 1980, 2: 3201}[clock]

    def nvmlDeviceGetTemperature(self, handle: Any, sensor: int) -> int:
        assert sensor == 0
        return self._gpu(handle).temperature

    def nvmlDeviceGetPowerUsage(self, handle: Any) -> int:
        return self._gpu(handle).power_mw

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any) -> int:
        return self._gpu(handle).energy_mj

    def nvmlDeviceGetPcieReplayCounter(self, _: Any) -> int:
        return 7

    def nvmlDeviceGetUtilizationRates(self, handle: Any) -> Any:
        gpu, memory = self._gpu(handle).utilization
        return SimpleNamespace(gpu=gpu, memory=memory)

    def nvmlDeviceGetEncoderUtilization(self, _: Any) -> list[int]:
        return [3, 167_000]

    def nvmlDeviceGetDecoderUtilization(self, _: Any) -> list[int]:
        return [4, 167_000]

    def nvmlDeviceGetGridLicensableFeatures(self, _: Any) -> Any:
        feature = SimpleNamespace(featureState=0)
        return SimpleNamespace(
            isGridLicenseSupported=0, licensableFeaturesCount=1, gridLicensableFeatures=[feature] * 3
        )

    def nvmlDeviceGetMemoryInfo(self, handle: Any, version: int | None = None) -> Any:
        total, used, reserved = self._device(handle).memory
        assert version in (None, 0x02000028)
        return SimpleNamespace(total=total, used=used, reserved=reserved, free=total - used - reserved)

    def nvmlDeviceGetFieldValues(self, handle: Any, numbers: list[int]) -> list[Any]:
        return [_field_value(self._gpu(handle).fields.get(number, "NOT_SUPPORTED")) for number in numbers]

    def nvmlDeviceGetMigMode(self, handle: Any) -> list[int]:
        mode = self._gpu(handle).mig_mode
        if mode is None:
            raise NVMLError(ERRORS["NOT_SUPPORTED"])
        return [mode, mode]

    def nvmlDeviceGetMaxMigDeviceCount(self, _: Any) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, place: int) -> Any:
        migs = self._gpu(handle).migs
        if place >= len(migs) or migs[place] is None:
            raise NVMLError(ERRORS["NOT_FOUND"])
        return _handle(0, _address(handle) + 1 + place)

    def nvmlDeviceGetGpuInstanceId(self, handle: Any) -> int:
        mig = self._device(handle)
        assert isinstance(mig, FakeMig)
        return mig.instance

    def nvmlDeviceGetAttributes(self, handle: Any) -> Any:
        mig = self._device(handle)
        return SimpleNamespace(memorySizeMB=mig.memory[0] >> 20, gpuInstanceSliceCount=1)

    def nvmlGpmQueryDeviceSupport(self, handle: Any) -> Any:
        return SimpleNamespace(isSupportedDevice=int(self._gpu(handle).hopper))

    def nvmlGpmSampleAlloc(self) -> Any:
        self._next += 1
        self.lent.add(self._next)
        self.sampled[self._next] = None
        return _handle(0, self._next)

    def nvmlGpmSampleFree(self, sample: Any) -> None:
        self.lent.remove(_address(sample))

    def nvmlGpmSampleGet(self, handle: Any, sample: Any) -> Any:
        self.sampled[_address(sample)] = (self._gpu(handle), None)
        return sample

    def nvmlGpmMigSampleGet(self, handle: Any, instance: int, sample: Any) -> Any:
        self.sampled[_address(sample)] = (self._gpu(handle), instance)
        return sample

    def nvmlGpmMetricsGet(self, request: Request) -> Request:
        first, second = (self.sampled[_address(sample)] for sample in (request.sample1, request.sample2))
        assert first == second
        assert first is not None
        gpu, instance = first
        figures = gpu.gpm if instance is None else gpu.gpm_on_migs[instance]
        for place in range(request.numMetrics):
            metric = request.metrics[place]
            answer = figures.get(metric.metricId, "NOT_SUPPORTED")
            metric.nvmlReturn = ERRORS[answer] if isinstance(answer, str) else 0
            metric.value = 0.0 if isinstance(answer, str) else answer
        return request

    def nvmlEventSetCreate(self) -> str:
        self.sets += 1
        return "set"

    def nvmlEventSetFree(self, _: Any) -> None:
        self.sets -= 1

    def nvmlDeviceRegisterEvents(self, _: Any, types: int, __: Any) -> None:
        assert types == 8

    def nvmlEventSetWait_v2(self, _: Any, timeout_ms: int) -> Any:
        self.waiting.set()
        try:
            return self.events.get(timeout=min(timeout_ms / 1000, 0.02))
        except queue.Empty:
            raise NVMLError(ERRORS["TIMEOUT"]) from None

    def _check(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Fail if this function shall, for this GPU."""
        uuid = ""
        if arguments and isinstance(arguments[0], ctypes.POINTER(Opaque)):
            index = (_address(arguments[0]) - _FIRST) // _STRIDE
            uuid = self.gpus[index].uuid if index < len(self.gpus) else ""
        for key in ((name, uuid), (name, ""), ("", uuid), ("", "")):
            if error := self.fails.get(key):
                raise NVMLError(ERRORS[error])

    def _gpu(self, handle: Any) -> FakeGpu:
        return self.gpus[(_address(handle) - _FIRST) // _STRIDE]

    def _device(self, handle: Any) -> FakeGpu | FakeMig:
        place = (_address(handle) - _FIRST) % _STRIDE
        gpu = self._gpu(handle)
        mig = gpu.migs[place - 1] if place else None
        return mig or gpu


def once(check: Callable[[], bool], deadline_s: float = 10.0) -> None:
    """Wait until another thread has made it true."""
    ticks = threading.Event()
    for _ in range(int(deadline_s / 0.01)):
        if check():
            return
        ticks.wait(0.01)
    raise AssertionError("it did not come true")


def _handle(index: int, address: int = 0) -> Any:
    pointer = ctypes.c_void_p(address or _FIRST + index * _STRIDE)
    return ctypes.cast(pointer, ctypes.POINTER(Opaque))


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0


def _field_value(answer: float | str) -> Any:
    if isinstance(answer, str):
        return SimpleNamespace(nvmlReturn=ERRORS[answer], valueType=0, value=None)
    return SimpleNamespace(nvmlReturn=0, valueType=1, value=SimpleNamespace(uiVal=answer))
