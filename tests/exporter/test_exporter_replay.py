"""Simulated GPUs against the recording itself: raw samples of the trace are among the test data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from exporter_process import write_gpus

from gpuworkshop.errors import GpuFileError, TraceError
from gpuworkshop.exporter import models, trace
from gpuworkshop.exporter.backends import clips
from gpuworkshop.exporter.backends.clips import library
from gpuworkshop.exporter.backends.mix import BOOT, Mix
from gpuworkshop.exporter.backends.replay import ReplayBackend
from gpuworkshop.exporter.fields import NOT_ON_MIG, Field
from gpuworkshop.exporter.loads import Load
from gpuworkshop.exporter.trace import COLUMN, FIELDS

RAW = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "data" / "exporter-h200-samples.jsonl")
    .read_text()
    .splitlines()
]
# A time at which every wave of a whole number of seconds up to 60 starts its cycle, in 2024.
START = 1_720_000_800 - 1_720_000_800 % (40 * 60 * 7)
MIB = 2**20

# Our field, the recorded column, and the factor between them.
COMPARED = (
    (Field.GPU_UTIL, "gpu_util", 100),
    (Field.MEM_COPY_UTIL, "mem_copy_util", 100),
    (Field.POWER, "power_w", 1),
    (Field.GPU_TEMP, "temp_c", 1),
    (Field.MEMORY_TEMP, "mem_temp_c", 1),
    (Field.SM_CLOCK, "sm_mhz", 1e-6),
    (Field.MEMORY_CLOCK, "mem_mhz", 1e-6),
    (Field.FB_USED, "fb_used_mib", 1 / MIB),
    (Field.FB_FREE, "fb_free_mib", 1 / MIB),
    (Field.GR_ENGINE, "gpm_gr_engine", 100),
    (Field.TENSOR, "gpm_tensor_active", 100),
    (Field.DRAM, "gpm_dram_active", 100),
    (Field.FP32, "gpm_fp32", 100),
    (Field.PCIE_TX, "gpm_pcie_tx_mib_s", 1 / MIB),
    (Field.PCIE_RX, "gpm_pcie_rx_mib_s", 1 / MIB),
)


def raw(load: str) -> list[dict[str, Any]]:
    return [sample for sample in RAW if sample["load"] == load]


def mix(*loads: Load) -> Mix:
    return Mix(loads, library())


def values(played: Mix, field: Field, times: Sequence[float]) -> list[float]:
    return [played.at(at)[COLUMN[field]] for at in times]


def every(step: float, seconds: float, start: float = START) -> list[float]:
    return [start + number * step for number in range(round(seconds / step))]


def backend(tmp_path: Path, gpus: Any) -> ReplayBackend:
    return ReplayBackend(write_gpus(tmp_path / "gpus.yaml", gpus), "node-1")


def test_a_20_20_wave_is_the_recording_sample_by_sample() -> None:
    wave = mix(Load("wave", 20, 20))
    recorded = raw("wave")
    assert len(recorded) == 161
    for field, column, factor in COMPARED:
        # The last sample is the next cycle's first: only close to how this cycle began.
        for sample in recorded[:-1]:
            played = wave.at(START + sample["t"] - recorded[0]["t"])[COLUMN[field]] * factor
            assert played == pytest.approx(sample[column]), (field, sample["t"])


def test_between_two_samples_values_are_interpolated() -> None:
    wave = mix(Load("wave", 20, 20))
    first, second = (sample["power_w"] for sample in raw("wave")[1:3])
    assert values(wave, Field.POWER, [START + 0.35])[0] == pytest.approx(first + (second - first) * 0.4)


@pytest.mark.parametrize(("on", "off"), [(20, 20), (7, 13), (90, 45), (2.5, 1.5)])
def test_the_period_and_duty_of_a_wave_are_what_it_was_told(on: float, off: float) -> None:
    utilisation = values(mix(Load("wave", on, off)), Field.GPU_UTIL, every(0.05, 12 * (on + off)))
    high = [value > 0.5 for value in utilisation]
    rises = [place * 0.05 for place in range(1, len(high)) if high[place] and not high[place - 1]]
    assert {round(b - a, 6) for a, b in pairwise(rises)} == {round(on + off, 6)}
    assert mean(high) == pytest.approx(on / (on + off), abs=0.05 / (on + off) * 2 + 1e-9)


def test_a_wave_keeps_the_absolute_clock() -> None:
    wave = mix(Load("wave", 20, 20))
    for cycle in (0, 1, 1000, 1_000_000):
        assert wave.at(START + 40 * cycle + 10) == pytest.approx(wave.at(START + 10), rel=1e-6)
        assert wave.at(START + 40 * cycle + 30)[COLUMN[Field.GPU_UTIL]] == 0


@pytest.mark.parametrize("kind", ["idle", "training", "memory-bound", "pcie-bound", "fp32"])
def test_a_steady_load_stays_what_was_recorded(kind: str) -> None:
    played, recorded = mix(Load(kind)), raw(kind)
    for field, column, factor in COMPARED:
        seen = [value * factor for value in values(played, field, every(0.25, 300))]
        told = [sample[column] for sample in recorded]
        assert min(told) <= min(seen) + 1e-6, field
        assert max(seen) <= max(told) + 1e-6, field
        assert mean(seen) == pytest.approx(mean(told), rel=0.05, abs=0.1), field


@pytest.mark.parametrize("kind", ["idle", "matmul", "training", "memory-bound", "pcie-bound", "fp32"])
def test_a_steady_load_never_jumps(kind: str) -> None:
    # The loop turns round somewhere in here; the recording itself moves by less than 30 W a quarter second.
    power = values(mix(Load(kind)), Field.POWER, every(0.05, 120))
    assert max(abs(b - a) for a, b in pairwise(power)) < 6


def test_utilisation_hides_what_the_tensor_and_dram_activity_show() -> None:
    shown = {
        kind: [
            round(mean(values(mix(Load(kind)), f, every(1, 60))), 1)
            for f in (Field.GPU_UTIL, Field.TENSOR, Field.DRAM)
        ]
        for kind in ("matmul", "memory-bound", "pcie-bound")
    }
    assert shown == {
        "matmul": [1.0, 0.9, 0.2],
        "memory-bound": [1.0, 0.0, 0.9],
        "pcie-bound": [1.0, 0.0, 0.0],
    }


def test_the_recorded_pair_plays_when_its_two_loads_share_a_gpu() -> None:
    played, recorded = mix(Load("matmul"), Load("fp32")), raw("pair")
    for field in (Field.TENSOR, Field.FP32, Field.POWER, Field.SM_CLOCK):
        column, factor = next((c, f) for each, c, f in COMPARED if each == field)
        told = mean(sample[column] for sample in recorded)
        assert mean(values(played, field, every(0.25, 60))) * factor == pytest.approx(told, rel=0.03)
    # To the MiB what both processes held in the recording.
    assert played.at(START)[COLUMN[Field.FB_USED]] / MIB == pytest.approx(recorded[0]["fb_used_mib"], abs=3)


def test_two_waves_that_share_a_gpu_show_whoever_is_on() -> None:
    played = mix(Load("wave", 20, 20), Load("fp32"))
    alone, both = START + 30, START + 10
    assert played.at(alone)[COLUMN[Field.TENSOR]] < 0.01
    assert played.at(alone)[COLUMN[Field.FP32]] > 0.7
    assert 0.3 < played.at(both)[COLUMN[Field.TENSOR]] < 0.45
    assert {round(value, 1) for value in values(played, Field.GPU_UTIL, every(1, 80))} == {1.0}


def test_loads_not_recorded_together_are_averaged_and_leave_no_pause() -> None:
    training, copying = mix(Load("training")), mix(Load("memory-bound"))
    both = mix(Load("training"), Load("memory-bound"))
    for field in (Field.POWER, Field.DRAM, Field.SM_CLOCK):
        middle = (training.at(START)[COLUMN[field]] + copying.at(START)[COLUMN[field]]) / 2
        assert both.at(START)[COLUMN[field]] == pytest.approx(middle)
    assert both.at(START)[COLUMN[Field.GPU_UTIL]] == 1
    idle = mix().at(START)[COLUMN[Field.FB_USED]]
    used = [each.at(START)[COLUMN[Field.FB_USED]] - idle for each in (training, copying, both)]
    assert used[0] + used[1] == used[2]


def test_the_shared_device_is_the_recordings_dance_of_two() -> None:
    played = mix(Load("shared"))
    # matmul is on for 20 s and fp32 for 10 s of every 20, as the recording's events say.
    shares = {
        field: mean(v > 0.2 for v in values(played, field, every(0.25, 400)))
        for field in (Field.TENSOR, Field.FP32)
    }
    assert shares == pytest.approx({Field.TENSOR: 0.5, Field.FP32: 0.5}, abs=0.02)
    assert mean(v > 0.5 for v in values(played, Field.GPU_UTIL, every(0.25, 400))) == pytest.approx(
        0.75, abs=0.02
    )


@pytest.mark.parametrize(
    "loads",
    [
        [Load("idle")],
        [Load("matmul")],
        [Load("training")],
        [Load("wave", 20, 20)],
        [Load("wave", 3.7, 90.1)],
        [Load("shared")],
        [Load("wave", 20, 20), Load("wave", 7, 6)],
        [Load("wave", 20, 20), Load("fp32"), Load("pcie-bound")],
    ],
    ids=str,
)
def test_energy_is_the_integral_of_power(loads: list[Load]) -> None:
    played = mix(*loads)
    for start, seconds in ((START + 3.21, 0.5), (START + 17.7, 123.4)):
        step = 0.002
        power = values(played, Field.POWER, every(step, seconds, start + step / 2))
        energy = played.joules(start + seconds) - played.joules(start)
        # Loads that jump where one hands over to another make the sum, not the integral, inexact.
        assert energy == pytest.approx(sum(power) * step, rel=2e-4)


def test_energy_agrees_with_the_recorded_counter() -> None:
    recorded = raw("wave")
    told = (recorded[-1]["energy_mj"] - recorded[0]["energy_mj"]) / 1000
    wave = mix(Load("wave", 20, 20))
    assert wave.joules(START + 40) - wave.joules(START) == pytest.approx(told, rel=0.02)
    assert wave.joules(BOOT) == 0


def test_waves_that_never_meet_are_refused_with_advice() -> None:
    waves = [Load("wave", 20.003, 20), Load("wave", 7.001, 6), Load("wave", 3.017, 2.3)]
    with pytest.raises(GpuFileError, match="hardly ever meet") as caught:
        mix(*waves)
    assert "round seconds" in caught.value.todo


@pytest.mark.parametrize(
    "model", [m for m in models.models().values() if m.key != "H200"], ids=lambda m: m.key
)
def test_another_model_is_scaled_by_its_limits(tmp_path: Path, model: models.Model) -> None:
    gpus = [
        {"index": n, "model": name, "load": "matmul"} for n, name in enumerate(("H200", model.key.lower()))
    ]
    recorded, scaled = (reading.values for reading in backend(tmp_path, gpus).read(START))
    assert scaled[Field.POWER] / recorded[Field.POWER] == pytest.approx(model.power_cap_w / 700)
    assert scaled[Field.SM_CLOCK] / recorded[Field.SM_CLOCK] == pytest.approx(model.max_sm_clock_mhz / 1980)
    assert scaled[Field.FB_CAPACITY] == model.memory_mib * MIB
    assert scaled[Field.FB_USED] + scaled[Field.FB_FREE] == pytest.approx(model.memory_mib * MIB, rel=1e-4)
    assert scaled[Field.PCIE_TX] / recorded[Field.PCIE_TX] == 2.0 ** (model.pcie_generation - 5)
    assert scaled[Field.TENSOR] == recorded[Field.TENSOR]
    assert scaled[Field.POWER] < model.power_cap_w
    # Nobody knows these: absent, not 0 and not the H200's.
    assert Field.MEMORY_CLOCK not in scaled
    assert (Field.MEMORY_TEMP in scaled) == model.hbm


def test_what_was_not_recorded_is_absent_and_what_never_happens_is_0(tmp_path: Path) -> None:
    (reading,) = backend(tmp_path, [{"index": 0}]).read(START)
    assert set(reading.values) == set(Field) - {Field.FB_RESERVED}
    for field in (Field.XID, Field.PCIE_REPLAY, Field.NVLINK, Field.ENC_UTIL, Field.ROW_REMAP_FAILED):
        assert reading.values[field] == 0


def test_mig_instances_share_the_parent_and_have_no_utilisation(tmp_path: Path) -> None:
    busy = {"profile": "3g.71gb", "id": 1, "pods": [{"pod": "trainer", "load": "matmul"}]}
    idle = {"profile": "1g.18gb", "id": 7}
    gpus = backend(
        tmp_path, [{"index": 0, "mig": [busy, idle]}, {"index": 1}, {"index": 2, "load": "matmul"}]
    )
    first, second, whole_idle, whole_busy = gpus.read(START)
    assert first.device.uuid == second.device.uuid
    assert [r.device.instance and r.device.instance.id for r in (first, second)] == [1, 7]
    assert not NOT_ON_MIG & (first.values.keys() | second.values.keys())
    expected = whole_idle.values[Field.POWER] + 3 / 7 * (
        whole_busy.values[Field.POWER] - whole_idle.values[Field.POWER]
    )
    assert first.values[Field.POWER] == second.values[Field.POWER] == pytest.approx(expected)
    assert first.values[Field.TENSOR] > 0.9
    assert second.values[Field.TENSOR] == 0
    assert [r.values[Field.FB_CAPACITY] / whole_idle.values[Field.FB_CAPACITY] for r in (first, second)] == [
        0.5,
        0.125,
    ]
    assert [len(gpus.pods(r.device)) for r in (first, second)] == [1, 0]
    hour = gpus.read(START + 3600)[0].values[Field.ENERGY] - first.values[Field.ENERGY]
    assert hour == pytest.approx(3600 * expected, rel=0.02)


def test_energy_grows_over_every_change_of_load_and_does_not_jump(tmp_path: Path) -> None:
    path = tmp_path / "gpus.yaml"
    gpus = backend(tmp_path, [{"index": 0}])
    before, at = gpus.read(START)[0].values[Field.ENERGY], float(START)
    for load in (
        "matmul",
        {"kind": "wave", "on": 5, "off": 5},
        "idle",
        "pcie-bound",
        "shared",
        "fp32",
        "idle",
    ):
        write_gpus(path, [{"index": 0, "load": load}])
        for _ in range(8):
            at += 0.25
            reading = gpus.read(at)[0].values
            assert 0 < reading[Field.ENERGY] - before < 0.25 * 750, load
            before = reading[Field.ENERGY]
    assert gpus.read(at - 3600)[0].values[Field.ENERGY] == before, "a clock that steps back"


def test_a_gpu_that_was_away_goes_on_from_where_its_counter_stood(tmp_path: Path) -> None:
    path = tmp_path / "gpus.yaml"
    both = [{"index": 0, "load": "matmul"}, {"index": 1}]
    gpus = backend(tmp_path, both)
    before = gpus.read(START)[0].values[Field.ENERGY]
    write_gpus(path, both[1:])
    assert [reading.device.index for reading in gpus.read(START + 1)] == [1]
    write_gpus(path, [{"index": 0}, {"index": 1}])
    assert gpus.read(START + 60)[0].values[Field.ENERGY] == before
    assert gpus.read(START + 61)[0].values[Field.ENERGY] == pytest.approx(before + 80, abs=2)


def test_one_fault_of_the_file_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gpus = backend(tmp_path, [{"index": 0}])
    for text in ("- {index: 0, lod: idle}", "- {index: 0, lod:   idle}", "- {index: 0, lod: idle}  "):
        write_gpus(tmp_path / "gpus.yaml", text)
        assert len(gpus.read(START)) == 1
        assert gpus.families()[1].samples[0][1] == 1
    assert caplog.text.count("unknown key 'lod'") == 1
    write_gpus(tmp_path / "gpus.yaml", "- {index: 0, lad: idle}")
    gpus.read(START)
    assert "unknown key 'lad'" in caplog.text


def test_two_processes_agree_on_everything_while_loads_are_unchanged(tmp_path: Path) -> None:
    entry = [
        {"index": 0, "pods": [{"pod": "a", "load": "wave"}, {"pod": "b", "load": {"kind": "wave", "on": 3}}]}
    ]
    first, second = backend(tmp_path, entry), backend(tmp_path, entry)
    first.read(START - 1234.5)
    assert first.read(START + 0.3) == second.read(START + 0.3)


def test_a_trace_that_lacks_its_wave_or_is_broken_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = trace.recorded()
    short = trace.Trace(whole.driver, whole.step_s, whole.rows[:60], whole.residents[:60], whole.starts)
    with pytest.raises(TraceError, match="no wave"):
        clips.cut(short)
    monkeypatch.setattr("gzip.decompress", lambda _: b'{"columns": {}}')
    with pytest.raises(TraceError, match="cannot be read"):
        trace.recorded.__wrapped__()


def test_rows_have_every_field_of_the_trace() -> None:
    assert {len(row) for row in trace.recorded().rows} == {len(FIELDS)}
    assert len(trace.recorded().rows) == 1400
