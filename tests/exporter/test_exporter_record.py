"""A recording of a made-up GPU says what the GPU said, can be packed and replayed, and loses nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from exporter_fake_nvml import FakeGpu, FakeNvml

from gpuworkshop.errors import ExporterError
from gpuworkshop.exporter import record as module
from gpuworkshop.exporter.backends.nvml.backend import NvmlBackend
from gpuworkshop.exporter.backends.nvml.library import Nvml
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.pack import pack
from gpuworkshop.exporter.record import Recording, record, write
from gpuworkshop.exporter.trace import COLUMN, SOURCES, parse


class Time:
    """A clock that passes only by sleeping, and by readings that take `reading_s`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def backend() -> Iterator[NvmlBackend]:
    binding: Any = FakeNvml(FakeGpu("GPU-a"))
    with NvmlBackend(Nvml(binding)) as opened:
        yield opened


def recorded(backend: NvmlBackend, path: Path, steps: int, step_s: float = 0.1) -> list[dict[str, Any]]:
    clock = Time()
    ticks: list[int] = []
    recording = Recording(backend, 0, "train")
    write(recording, path, steps, step_s, ticks.append, wall=clock, clock=clock, sleep=clock.sleep)
    assert sum(ticks) == steps
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_recording_can_be_packed_and_says_what_the_gpu_said(backend: NvmlBackend, tmp_path: Path) -> None:
    lines = recorded(backend, tmp_path / "t.jsonl", 5)
    assert [line["t"] for line in lines if "event" not in line] == [0, 0.1, 0.2, 0.3, 0.4]
    packed = pack([json.dumps(line) for line in lines], about="made up", driver="580")
    trace = parse(packed)
    assert trace.step_s == 0.1
    (reading,) = backend.read(0.0)
    for field in SOURCES:
        shown = trace.rows[-1][COLUMN[field]]
        assert shown == pytest.approx(reading.values[field], rel=1e-6), field
    assert lines[-1]["energy_mj"] == pytest.approx(reading.values[Field.ENERGY] * 1000)


def test_the_grid_is_kept_and_samples_that_are_missed_are_left_out(
    backend: NvmlBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Time()
    lines = Recording.lines

    def slow(self: Recording, t: float, at: float) -> list[dict[str, Any]]:
        clock.now += 0.25 if t == pytest.approx(0.1) else 0.03
        return lines(self, t, at)

    monkeypatch.setattr(Recording, "lines", slow)
    path = tmp_path / "t.jsonl"
    written = write(
        Recording(backend, 0, "x"), path, 6, 0.1, lambda _: None, wall=clock, clock=clock, sleep=clock.sleep
    )
    times = [json.loads(line)["t"] for line in path.read_text("utf-8").splitlines()]
    assert times == [0, 0.1, 0.4, 0.5]
    assert written == 4


def test_ctrl_c_keeps_what_was_recorded(backend: NvmlBackend, tmp_path: Path) -> None:
    path, clock = tmp_path / "t.jsonl", Time()

    def interrupted(seconds: float) -> None:
        clock.sleep(seconds)
        if len(clock.slept) == 4:
            raise KeyboardInterrupt

    recording = Recording(backend, 0, "x")
    assert write(recording, path, 100, 0.1, lambda _: None, wall=clock, clock=clock, sleep=interrupted) == 3
    assert len(path.read_text("utf-8").splitlines()) == 3


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_told_and_half_a_line_taken_back(
    backend: NvmlBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.jsonl"
    file = module._File(path)
    file.write({"t": 0})

    class Full:
        def __init__(self, real: Any) -> None:
            self.real = real

        def write(self, data: bytes) -> int:
            return int(self.real.write(data[:3]))

        def fileno(self) -> int:
            return int(self.real.fileno())

        def close(self) -> None:
            self.real.close()

    monkeypatch.setattr(file, "_file", Full(file._file))
    with pytest.raises(ExporterError, match="takes no more"):
        file.write({"t": 1})
    file.close()
    assert path.read_text("utf-8") == '{"t":0}\n'


def test_a_lost_gpu_leaves_nulls_and_the_recording_goes_on(
    backend: NvmlBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = backend.read
    calls: list[float] = []

    def sometimes(at: float) -> Any:
        calls.append(at)
        return [] if len(calls) == 2 else read(at)

    monkeypatch.setattr(backend, "read", sometimes)
    lines = recorded(backend, tmp_path / "t.jsonl", 3)
    assert [line["power_w"] is None for line in lines if "event" not in line] == [False, True, False]
    pack([json.dumps(line) for line in lines], about="", driver="")


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    binding: Any = FakeNvml(FakeGpu("GPU-a"))
    monkeypatch.setattr(module, "open_gpus", lambda: NvmlBackend(Nvml(binding)))


@pytest.mark.usefixtures("nvml")
def test_the_command_writes_a_file_that_was_not_there(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    done = CliRunner().invoke(record, ["--duration", "1", "--interval", "500", "--out", str(path)])
    assert done.exit_code == 0, done.output
    assert f"2 samples are in {path}" in done.output
    again = CliRunner().invoke(record, ["--out", str(path)])
    assert isinstance(again.exception, ExporterError)
    assert "is there already" in str(again.exception)


@pytest.mark.usefixtures("nvml")
@pytest.mark.parametrize(
    ("options", "seen"),
    [(["--gpu", "7"], "there is no GPU 7"), (["--out", "/no/such/folder/t"], "cannot be written")],
)
def test_what_cannot_be_recorded_is_told(options: list[str], seen: str) -> None:
    done = CliRunner().invoke(record, options)
    assert isinstance(done.exception, ExporterError)
    assert seen in str(done.exception)


def test_nothing_is_left_of_a_recording_without_a_sample(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    module._File(path).close()
    assert os.listdir(tmp_path) == []  # noqa: PTH208
