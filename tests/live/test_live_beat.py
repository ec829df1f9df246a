"""The sampler's thread beats in time, never queues, and ends."""

from __future__ import annotations

import threading
from threading import Event

import pytest

from gpuworkshop.live.beat import LONGEST_REST_S, Beat, pause_s


@pytest.mark.parametrize(
    ("now", "took", "pause"),
    [
        pytest.param(10.1, 0.1, 0.9, id="in time"),
        pytest.param(10.0, 0.0, 1.0, id="on the beat"),
        pytest.param(10.7, 0.7, 1.3, id="slow: one beat left out"),
        pytest.param(13.2, 3.2, 2.8, id="very slow"),
        pytest.param(100.5, 60.0, 2.5, id="hung: rests no longer than LONGEST_REST_S and a beat"),
    ],
)
def test_pause(now: float, took: float, pause: float) -> None:
    assert pause_s(now, took, 1.0) == pytest.approx(pause)
    assert min(took, LONGEST_REST_S) <= pause_s(now, took, 1.0) <= LONGEST_REST_S + 1


def test_it_beats_at_once_and_when_woken_and_ends() -> None:
    beaten = Event()
    beat = Beat("slow beat", beaten.set, every_s=3600)
    beat.start()
    assert beaten.wait(5)
    beaten.clear()
    beat.wake()
    assert beaten.wait(5)
    beat.stop()
    assert beat.ended.is_set()
    assert "slow beat" not in [thread.name for thread in threading.enumerate()]


def test_stop_from_within_does_not_wait_for_itself() -> None:
    beat = Beat("suicidal", lambda: beat.stop(), every_s=3600)
    beat.start()
    assert beat.ended.wait(5)


def test_stop_does_not_wait_for_a_call_that_hangs() -> None:
    hanging, let_go = Event(), Event()

    def hang() -> None:
        hanging.set()
        let_go.wait(60)

    beat = Beat("hanging", hang, every_s=3600)
    beat.start()
    assert hanging.wait(5)
    beat.stop(timeout_s=0.01)
    assert beat.ended.is_set()
    let_go.set()
