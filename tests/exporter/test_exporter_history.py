"""Back-filled history: it is what serving would have shown, and the real promtool takes it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from exporter_process import COMMAND, run, serving, write_gpus
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from gpuworkshop.exporter.backends.replay import ReplayBackend
from gpuworkshop.exporter.rendering import Renderer
from gpuworkshop.exporter.sampler import sample
from gpuworkshop.exporter.schema import SCHEMAS

START = 1_767_225_600
GPUS: list[dict[str, Any]] = [
    {"index": 0, "pods": [{"pod": "burn", "load": {"kind": "wave", "on": 20, "off": 20}}]},
    {"index": 1, "model": "A10G", "pods": [{"pod": 'odd "name"\\\n'}, {"pod": "other", "load": "training"}]},
    {"index": 2, "mig": [{"profile": "1g.18gb", "id": 3}]},
]


@pytest.fixture
def gpus(tmp_path: Path) -> Path:
    return write_gpus(tmp_path / "gpus.yaml", GPUS)


def backfill(gpus: Path, *options: str) -> str:
    ended = run("--gpus", str(gpus), "--hostname", "node-1", "--backfill", *options)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return ended.stdout


def parsed(text: str) -> dict[str, Metric]:
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    return {family.name: family for family in families}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_it_is_openmetrics_with_every_default_field(gpus: Path, schema: str) -> None:
    text = backfill(gpus, str(START), str(START + 100), "--step", "5", "--schema", schema)
    assert text.endswith("# EOF\n")
    families = parsed(text)
    expected = {m.name for m in SCHEMAS[schema].metrics if "RESERVED" not in m.name}
    assert {name for name in families if name.startswith("DCGM")} == expected
    assert {family.type for family in families.values()} == {"gauge", "unknown"}
    marks = families["gpuworkshop_backfilled_until_seconds"].samples
    assert sorted({float(str(mark.timestamp)) for mark in marks}) == [START + 5 * n for n in range(21)]
    assert {mark.value for mark in marks} == {START + 100}
    notes = {sample.labels["note"] for sample in families["gpuworkshop_simulated_info"].samples}
    assert notes == {"H200 trace", "H200 trace scaled to A10G"}


def test_every_point_is_what_a_scrape_would_have_shown(gpus: Path) -> None:
    text = backfill(gpus, str(START), str(START + 60), "--step", "0.5")
    points: dict[str, set[str]] = {}
    for series, value, at in re.findall(r"^(DCGM_.*\}) (\S+) (\S+)$", text, re.MULTILINE):
        points.setdefault(at, set()).add(f"{series} {value}")
    assert len(points) == 121
    backend = ReplayBackend(gpus, "node-1")
    renderer = Renderer(SCHEMAS["4.8.4"], "node-1")
    for at, found in points.items():
        scrape = renderer.render(sample(backend, backend, float(at))).decode().splitlines()
        assert found == {line for line in scrape if line.startswith("DCGM_")}


def test_the_energy_counter_goes_on_from_history_to_serving(gpus: Path) -> None:
    with serving(gpus) as exporter:
        now = exporter.value("gpuworkshop_sample_timestamp_seconds") or 0.0
        before = backfill(gpus, f"{now - 2:.3f}", f"{now - 2:.3f}")
        served = exporter.value("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_total", gpu="0") or 0.0
    found = re.search(r'ENERGY_CONSUMPTION\{gpu="0".*\} (\d+) ', before)
    assert found
    # Some seconds of at most 700 W, in mJ.
    assert 0 < served - int(found[1]) < 700_000 * 60


def test_labels_of_the_target_are_added_as_prometheus_adds_them(gpus: Path) -> None:
    text = backfill(gpus, str(START), str(START), "--label", "job=dcgm", "--label", "pod=exporter-x")
    families = parsed(text)
    labels = families["DCGM_FI_DEV_GPU_UTIL"].samples[0].labels
    assert (labels["job"], labels["pod"], labels["exported_pod"]) == ("dcgm", "exporter-x", "burn")
    marked = families["gpuworkshop_backfilled_until_seconds"].samples[0].labels
    assert (marked["job"], marked["pod"], marked["exported_pod"]) == ("dcgm", "exporter-x", "burn")


@pytest.mark.real
def test_promtool_makes_blocks_of_it(gpus: Path, tmp_path: Path, promtool: Path) -> None:
    history = tmp_path / "history.om"
    history.write_text(backfill(gpus, str(START), str(START + 7200), "--step", "5", "--label", "job=dcgm"))
    blocks = tmp_path / "blocks"
    command = [str(promtool), "tsdb", "create-blocks-from", "openmetrics", str(history), str(blocks)]
    made = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert made.returncode == 0, made.stderr + made.stdout
    counts = [json.loads(meta.read_text())["stats"] for meta in blocks.glob("*/meta.json")]
    lines = [line for line in history.read_text().splitlines() if not line.startswith("#")]
    assert sum(count["numSamples"] for count in counts) == len(lines)


@pytest.mark.real
def test_promtool_complains_of_nothing_but_dcgms_own_naming(gpus: Path, promtool: Path) -> None:
    with serving(gpus) as exporter:
        body = exporter.get()[1]
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=body, capture_output=True, timeout=60, check=False
    )
    complaints = (checked.stdout + checked.stderr).decode().splitlines()
    assert [line for line in complaints if not line.startswith("DCGM_")] == []
    # The label names, the counters without _total, and PCIE_REPLAY_COUNTER are DCGM's.
    known = ("'snake_case' not 'camelCase'", '"_total" suffix', "should not include type 'counter'")
    assert [line for line in complaints if not any(words in line for words in known)] == []
    assert complaints


def test_a_reader_that_stops_reading_is_said(gpus: Path) -> None:
    full = Path("/dev/full")
    with full.open("w") as nowhere:
        command_line = ["--gpus", str(gpus), "--backfill", str(START), str(START + 60)]
        ended = _run_to(nowhere, command_line)
    assert ended.returncode == 1
    assert "ExporterError: back-filling: standard output takes no more: No space left" in ended.stderr
    assert "Traceback" not in ended.stderr


def _run_to(stdout: Any, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, check=False
    )
