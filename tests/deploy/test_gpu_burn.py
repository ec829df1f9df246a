"""gpu-burn keeps to the absolute clock, and to what the GPU is: so several pods load their GPUs in step."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

from gpuworkshop.deploy import charts

SCRIPT = charts.path("gpu-burn") / "files" / "gpu_burn.py"
LIMIT_S = 30


@contextmanager
def burning(*words: str) -> Iterator[Iterator[str]]:
    """What the script says, started as the rehearsal's kubelet does, in UTC."""
    process = subprocess.Popen(
        [sys.executable, "-I", SCRIPT, *words],
        env={"PATH": os.environ["PATH"], "TZ": "UTC", "GPUWORKSHOP_SIMULATED_GPU": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield iter(process.stdout)
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)


def test_phases_are_those_of_the_absolute_clock() -> None:
    with burning("2", "1") as lines:
        next(lines)
        next(lines)  # whatever phase it began in
        for _ in range(2):
            said, word = next(lines).split()
            hours, minutes, seconds = map(int, said.split(":"))
            today = int(time.time()) // 86400 * 86400
            phase = (today + hours * 3600 + minutes * 60 + seconds) % 3
            assert word == ("on" if phase < 2 else "off")


@pytest.fixture
def script() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("gpu_burn", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_register_and_label_of_the_kernel_is_declared(script: ModuleType) -> None:
    """There is no driver here that could compile it."""
    text = script.KERNEL.decode("ascii").removesuffix("\0")
    declared = set()
    for line in re.findall(r"\.reg \.\w+ ([^;]+);", text):
        for name, _, count in re.findall(r"(%\w+)(<(\d+)>)?", line):
            declared |= {f"{name}{n}" for n in range(int(count))} if count else {name}
    used = set(re.findall(r"%\w+\b(?!<)", text)) - {"%tid"}
    assert used == declared
    assert set(re.findall(r"bra (\w+)", text)) == set(re.findall(r"^(\w+):", text, re.MULTILINE))
    assert text.count("{") == text.count("}")
    assert text.count("mma.sync") == len(script.SUMS)


class Driver:
    """A libcuda that notes its calls; the GPU has 132 multiprocessors."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append((name, arguments))
            if name == "cuDeviceGetAttribute":
                arguments[0]._obj.value = 132
            return 0

        return call


def gpu_of(script: ModuleType, monkeypatch: pytest.MonkeyPatch, driver: Driver) -> Any:
    monkeypatch.setattr(script.ctypes, "CDLL", lambda _: driver)
    return script.Gpu()


def test_two_blocks_for_each_multiprocessor(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    gpu_of(script, monkeypatch, driver).launch()
    (launched,) = (arguments for name, arguments in driver.calls if name == "cuLaunchKernel")
    assert launched[1:4] == (2 * 132, 1, 1)


def test_rounds_stay_within_what_the_kernel_can_count(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = gpu_of(script, monkeypatch, Driver())
    for _ in range(50):
        gpu.launch()  # at once, as if the GPU were infinitely fast
        assert 0 < gpu.rounds < 2**32
