"""A view tick by tick, on the test's clock and without its thread."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from stored import START, Clock, StoredSamples, labels, square, still_view, two_pods, unreachable

from gpuworkshop.errors import LiveError, NoData, PrometheusUnreachable
from gpuworkshop.live.liveview import LiveView
from gpuworkshop.live.status import clock as in_clock


@pytest.fixture
def source() -> StoredSamples:
    return two_pods()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def view(source: StoredSamples, clock: Clock) -> LiveView:
    return still_view(source, clock)


def png(view: LiveView) -> bytes:
    return bytes(view.controls.image.value)


def test_a_tick_puts_up_a_picture_and_says_how_fresh_it_is(view: LiveView) -> None:
    view.tick()
    assert Image.open(BytesIO(png(view))).format == "PNG"
    assert view.controls.status.value == f"updated {in_clock(START)} · 2 pods · simulated: H200 trace"
    assert view.controls.image.tooltip == "Live plot of power"


def test_the_picture_moves(view: LiveView, clock: Clock) -> None:
    view.tick()
    first = png(view)
    clock.now += 1
    view.tick()
    assert png(view) != first


def test_nothing_is_sent_when_nothing_changed(view: LiveView) -> None:
    view.tick()
    sent: list[object] = []
    view.controls.image.observe(sent.append)
    view.controls.status.observe(sent.append)
    view.tick()
    assert sent == []


def test_frame_is_what_the_picture_shows(view: LiveView) -> None:
    view.tick()
    frame = view.frame
    assert frame.index.name == "time"
    assert str(frame.index.tz) == "UTC"  # type: ignore[attr-defined]
    assert frame.columns.names == ["namespace", "pod", "container", "node", "gpu"]
    assert [column[1] for column in frame.columns] == ["a", "b"]
    assert frame.attrs["unit"] == "W"
    assert frame.attrs["metric"] == "power"
    assert frame.attrs["simulated"] == "H200 trace"
    times = frame.index.astype("datetime64[s, UTC]").astype("int64").to_numpy()
    np.testing.assert_array_equal(frame.to_numpy()[:, 0], square(times))


def test_a_fault_is_shown_and_the_view_goes_on_without_loss(
    view: LiveView, source: StoredSamples, clock: Clock
) -> None:
    view.tick()
    source.fault = unreachable()
    for _ in range(10):
        clock.now += 1
        view.tick()
    assert isinstance(view.fault, PrometheusUnreachable)
    assert f"since {in_clock(START + 1)}: Asking Prometheus: nothing answers" in view.controls.status.value
    assert len(view.frame) == 51
    source.fault = None
    clock.now += 1
    view.tick()
    assert f"back since {in_clock(START + 11)}" in view.controls.status.value
    assert len(view.frame) == 61


def test_an_outage_shows_as_a_gap_that_grows(view: LiveView, source: StoredSamples, clock: Clock) -> None:
    view.tick()
    source.fault = unreachable()
    clock.now += 1
    view.tick()
    before = png(view)
    clock.now += 1
    view.tick()
    assert png(view) != before


def test_a_fault_of_our_own_is_shown_too(view: LiveView, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise ZeroDivisionError("in the drawing")

    monkeypatch.setattr(view._figure, "draw", fail)
    view.tick()
    assert "ZeroDivisionError: in the drawing." in view.controls.status.value


def test_one_panels_fault_does_not_keep_the_others_back(
    source: StoredSamples, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = source.range

    def half(expr: str, *args: object, **more: object) -> object:
        if expr == "power":
            raise unreachable()
        return answer(expr, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(source, "range", half)
    view = still_view(source, clock)
    view.controls.metric.value = "both"
    view.tick()
    assert len(view.frames["use"]) == 61
    assert view.frames["power"].empty
    assert "nothing answers" in view.controls.status.value


def test_pause_lets_the_picture_stand_and_resume_fills_the_gap(
    view: LiveView, source: StoredSamples, clock: Clock
) -> None:
    view.tick()
    view.pause()
    standing, asked = png(view), len(source.asked)
    for _ in range(20):
        clock.now += 1
        view.tick()
    assert png(view) == standing
    assert len(source.asked) == asked
    assert f"paused at {in_clock(START + 1)}" in view.controls.status.value
    assert view.controls.pause.description == "Resume"
    view.resume()
    view.tick()
    assert png(view) != standing
    assert len(view.frame) == 61
    assert view.frame.index[-1].timestamp() == START + 20
    assert view.controls.pause.description == "Pause"


def test_a_choice_while_paused_is_shown_as_of_then(view: LiveView, clock: Clock) -> None:
    view.tick()
    view.pause()
    view.tick()
    clock.now += 30
    view.controls.metric.value = "both"
    view.tick()
    assert list(view.frames) == ["power", "use"]
    assert view.frame.index[-1].timestamp() == START


def test_another_metric(view: LiveView, source: StoredSamples) -> None:
    view.tick()
    alone = Image.open(BytesIO(png(view))).height
    view.controls.metric.value = "both"
    view.tick()
    assert {expr for expr, *_ in source.asked} == {"power", "use"}
    assert Image.open(BytesIO(png(view))).height > alone
    assert view.controls.image.tooltip == "Live plot of power, use"


def test_another_window(view: LiveView) -> None:
    view.tick()
    view.controls.window.value = 300.0
    view.tick()
    assert len(view.frame) == 301


def test_stop_leaves_the_picture_and_says_so(view: LiveView) -> None:
    view.tick()
    standing = png(view)
    view.stop()
    assert png(view) == standing
    assert f"stopped at {in_clock(START)}" in view.controls.status.value
    assert view.controls.pause.disabled
    assert not view.running


def test_a_view_with_a_lifetime_ends_by_itself(source: StoredSamples, clock: Clock) -> None:
    view = still_view(source, clock, lifetime_s=10.0)
    view.tick()
    clock.now += 11
    view.tick()
    assert not view.running
    assert "ended by itself" in view.controls.status.value


def test_waiting_for_data_that_do_not_come_says_why(view: LiveView, source: StoredSamples) -> None:
    source.fault = unreachable()
    view.tick()
    with pytest.raises(NoData, match="nothing answers at"):
        view.wait_for_data(0.01)
    source.fault, source.series = None, []
    view.tick()
    with pytest.raises(NoData, match="has no such series"):
        view.wait_for_data(0.01)
    source.series = [(labels("a"), square)]
    view.controls.metric.value = "both"
    view.tick()
    view.wait_for_data(0.01)


def test_snapshot_is_the_picture_with_words(view: LiveView) -> None:
    view.tick()
    snapshot = view.snapshot()
    assert snapshot.png == png(view)
    assert "default/a gpu 0 98 W, default/b gpu 1 50 W" in snapshot.alt


def test_snapshot_before_any_picture_says_why(view: LiveView) -> None:
    with pytest.raises(NoData):
        view.snapshot(timeout_s=0.01)


@pytest.mark.parametrize(("every_s", "window_s"), [(0, 60), (-1, 60), (31, 60), (float("nan"), 60)])
def test_times_that_make_no_plot(
    source: StoredSamples, clock: Clock, every_s: float, window_s: float
) -> None:
    with pytest.raises(LiveError, match="makes no plot"):
        still_view(source, clock, every_s=every_s, window_s=window_s)
