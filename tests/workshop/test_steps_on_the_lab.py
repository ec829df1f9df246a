"""The steps, on a real lab: exporter and Prometheus run, and every proof is asked of Prometheus."""

from __future__ import annotations

import time

import pandas as pd
import pytest

from gpuworkshop.errors import MetricsError, UnknownQuantity, UnknownStep
from gpuworkshop.lab.stage import LEAD_S
from gpuworkshop.metrics import PrometheusReader, waves
from gpuworkshop.processes import groups
from gpuworkshop.settings import Settings
from gpuworkshop.workshop import Workshop

pytestmark = pytest.mark.real
WAVE = '{pod=~"gpu-burn-.*"}'


def test_steps_are_checked_against_the_world(ws: Workshop) -> None:
    step = ws.step("three-pods")
    step.reset()
    assert not step.check().ok
    assert "ws.step('three-pods').apply()" in str(step.check())
    assert step.apply().ok
    assert step.apply().ok
    assert step.check().ok


def test_three_pods_are_proved_busy_by_data(ws: Workshop) -> None:
    ws.step("three-pods").apply()
    verdict = ws.step("three-pods").verify()
    assert verdict.ok, str(verdict)
    assert "robotics/simulator-0 100 %" in verdict.seen


def test_utilisation_hides_what_the_table_shows(ws: Workshop) -> None:
    ws.step("three-pods").apply()
    assert ws.step("three-pods").verify().ok
    table = ws.table(["gpu utilisation", "power", "tensor activity"], matchers='namespace!=""', over="5s")
    power = table["power (W)"]
    assert (table["GPU utilisation (%)"][["language/tuner-0", "robotics/simulator-0"]] > 95).all()
    assert power["language/tuner-0"] > 4 * power["robotics/simulator-0"]


def test_a_figure_that_was_simulated_says_so(ws: Workshop) -> None:
    ws.step("three-pods").apply()
    assert ws.step("three-pods").verify().ok
    assert ws.prometheus.latest("DCGM_FI_DEV_POWER_USAGE").attrs["simulated"] == "H200 trace"


def test_catching_up_makes_a_history_with_the_wave_in_it(ws: Workshop) -> None:
    verdict = ws.catch_up("prometheus-live")
    assert verdict.ok, str(verdict)
    history = ws.range(f"DCGM_FI_DEV_GPU_UTIL{WAVE}", last="10m")
    measured = waves.table(history).iloc[0]
    assert measured["period_s"] == pytest.approx(40, abs=1)
    assert measured["duty"] == pytest.approx(0.5, abs=0.03)
    assert measured["cycles"] >= 3
    assert ws.step("gpu-burn").compare(waves.table(history)).ok  # type: ignore[attr-defined]


def test_history_is_marked_as_back_filled(ws: Workshop) -> None:
    assert ws.catch_up("prometheus-live").ok
    with PrometheusReader(ws.target.prometheus_url) as reader:
        history = reader.range(f"DCGM_FI_DEV_GPU_UTIL{WAVE}", time.time() - 600, time.time(), 1.0)
    until = history.attrs["backfilled_before"]
    assert history.index[0] < until <= pd.Timestamp.now(tz="UTC") + pd.Timedelta(seconds=LEAD_S)


def test_power_clock_and_tensor_activity_follow_the_wave(ws: Workshop) -> None:
    assert ws.catch_up("prometheus-live").ok
    busy = ws.range(f"DCGM_FI_DEV_GPU_UTIL{WAVE}", last="5m").iloc[:, 0]
    for metric, on, off in (
        ("DCGM_FI_DEV_POWER_USAGE", (600, 710), (115, 200)),
        ("DCGM_FI_DEV_SM_CLOCK", (1400, 1600), (1900, 1980)),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", (0.85, 0.95), (0, 0.01)),
    ):
        values = ws.range(f"{metric}{WAVE}", last="5m").iloc[:, 0].to_numpy()[-len(busy) :]
        busy_values = busy.to_numpy()[-len(values) :]
        assert on[0] <= pd.Series(values[busy_values > 90]).median() <= on[1], metric
        assert off[0] <= pd.Series(values[busy_values < 10]).median() <= off[1], metric


def test_when_caught_up_every_pod_can_be_queried_and_stays_so(ws: Workshop) -> None:
    ws.step("gpu-burn").reset()
    ws.step("gpu-burn").apply()
    ws.target.backfill(ws.target.pods_on_gpus(), 60)
    running = "|".join(pod.name for pod in ws.target.pods_on_gpus())
    for _ in range(30):
        assert ws.prometheus.latest(f'DCGM_FI_DEV_GPU_UTIL{{pod=~"{running}"}}').shape[1] == 4
        assert ws.health().ok
        time.sleep(0.3)  # what was back-filled alone would go stale in this time


def test_catching_up_again_changes_nothing(ws: Workshop) -> None:
    assert ws.catch_up("prometheus-live").ok
    before = {s.name: s.pid for s in ws.target.status()}
    assert ws.catch_up("prometheus-live").ok
    assert {s.name: s.pid for s in ws.target.status()} == before


def test_back_filling_loses_nothing_that_was_stored(ws: Workshop, own: Settings) -> None:
    assert ws.health().ok
    stored = ws.prometheus.latest("count_over_time(up[1h])").to_numpy()[0, 0]
    ws.step("gpu-burn").apply()
    ws.target.backfill(ws.target.pods_on_gpus(), 600)
    assert ws.prometheus.latest("count_over_time(up[1h])").to_numpy()[0, 0] >= stored


def test_gpu_burn_can_be_reset(ws: Workshop) -> None:
    ws.step("gpu-burn").apply()
    assert ws.step("gpu-burn").reset().ok
    assert not ws.step("gpu-burn").check().ok
    assert ws.step("gpu-burn").reset().ok


@pytest.mark.full
@pytest.mark.timeout(240)
def test_the_wave_read_back_live_over_three_periods(ws: Workshop) -> None:
    ws.step("gpu-burn").apply()
    begun = time.time()
    while time.time() < begun + 165:
        time.sleep(5)  # three whole periods, and no part of them made up
    (pod,) = [pod.name for pod in ws.target.pods_on_gpus() if pod.name.startswith("gpu-burn-")]
    live = ws.prometheus.range(f'DCGM_FI_DEV_GPU_UTIL{{pod="{pod}"}}', begun + 2, time.time(), 1.0)
    measured = waves.measure(live.iloc[:, 0])
    assert measured.cycles >= 3
    assert measured.period_s == pytest.approx(40, abs=1)
    assert measured.duty == pytest.approx(0.5, abs=0.03)


def test_no_catch_up_of_an_unknown_notebook(ws: Workshop) -> None:
    with pytest.raises(UnknownStep, match="did you mean 'prometheus-live'"):
        ws.catch_up("prometheus-life")


def test_unknown_names_get_near_ones(ws: Workshop) -> None:
    with pytest.raises(UnknownStep, match="did you mean 'gpu-burn'"):
        ws.step("gpu-brun")
    with pytest.raises(UnknownQuantity):
        ws.live("gpu happiness")
    with pytest.raises(MetricsError, match="no length of time"):
        ws.range("up", last="ten minutes")
    with pytest.raises(MetricsError, match="shorter range"):
        ws.range("up", last="99999999h")


def test_show_prints_what_is_behind_a_step(ws: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    ws.step("gpu-burn").apply()
    ws.step("gpu-burn").show()
    shown = capsys.readouterr().out
    assert "kubectl apply --server-side -f" in shown
    assert "kind: wave" in shown
    assert "nvidia.com/gpu: 1" in shown


def test_a_lab_that_is_down_says_what_to_do_and_comes_back_with_all_it_stored(
    ws: Workshop, own: Settings
) -> None:
    assert ws.health().ok
    begun = time.time()
    assert ws.step("lab").reset().ok
    assert [s.state for s in groups.status_of("lab", own)] == ["stopped", "stopped"]
    assert not ws.health().ok
    assert "apply()" in str(ws.health())
    assert "./run.sh" in str(ws.step("three-pods").verify())
    assert ws.step("lab").apply().ok
    assert ws.health().ok
    assert ws.prometheus.range("up", begun - 30, begun, 1.0).notna().to_numpy().any()
