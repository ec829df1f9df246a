"""Views by name, with their real threads; what is asked for by name; what they show without a kernel."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from ipywidgets.widgets import widget
from stored import StoredSamples, two_pods

from gpuworkshop import live
from gpuworkshop.errors import LiveError, UnknownQuantity
from gpuworkshop.live import named

VIEW_MIME = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def source() -> StoredSamples:
    return two_pods()


@pytest.fixture(autouse=True)
def _no_view_left() -> Iterator[None]:
    yield
    live.stop_all()
    assert sampler_threads() == []


def sampler_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("live view")]


def eventually(true: Callable[[], bool], timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_view_moves_by_itself(source: StoredSamples) -> None:
    view = live.view("wave", source, "gpu utilisation", window_s=10, every_s=0.1)
    view.wait_for_data()
    first = view.snapshot().png
    eventually(lambda: view.snapshot().png != first)
    assert view.frame.attrs["metric"] == "GPU utilisation"
    assert "DCGM_FI_DEV_GPU_UTIL" in source.asked[0][0]


def test_a_view_of_the_same_name_replaces_the_old_one(source: StoredSamples) -> None:
    old = live.view("wave", source, every_s=0.1)
    new = live.view("wave", source, every_s=0.1)
    other = live.view("another", source, every_s=0.1)
    assert not old.running
    assert old.controls.box.comm is None
    assert live.views() == {"wave": new, "another": other}
    assert sorted(sampler_threads()) == ["live view another", "live view wave"]


def test_a_view_that_cannot_be_made_leaves_the_old_one(source: StoredSamples) -> None:
    old = live.view("wave", source, every_s=0.1)
    with pytest.raises(LiveError):
        live.view("wave", source, every_s=0)
    assert old.running


def test_widgets_of_replaced_views_are_not_kept(source: StoredSamples) -> None:
    live.view("wave", source, every_s=0.1).wait_for_data()
    live.view("wave", source, every_s=0.1).wait_for_data()
    before = len(widget._instances)
    live.view("wave", source, every_s=0.1).wait_for_data()
    assert len(widget._instances) == before


def test_stop_all_leaves_no_thread(source: StoredSamples) -> None:
    for name in "abc":
        live.view(name, source, every_s=0.1)
    live.stop_all()
    assert sampler_threads() == []
    assert live.views() == {}


def test_an_exception_in_the_thread_is_shown_and_the_thread_goes_on(source: StoredSamples) -> None:
    source.fault = RuntimeError("out of paper")
    view = live.view("wave", source, every_s=0.1)
    eventually(lambda: "RuntimeError: out of paper." in view.controls.status.value)
    source.fault = None
    view.wait_for_data()
    eventually(lambda: "back since" in view.controls.status.value)


def test_run_for_lets_others_run_and_the_picture_move(source: StoredSamples) -> None:
    view = live.view("wave", source, window_s=10, every_s=0.1)
    view.wait_for_data()
    first, beats = view.snapshot().png, 0

    async def watch() -> None:
        nonlocal beats
        waiting = asyncio.create_task(view.run_for(0.5))
        while not waiting.done():
            beats += 1
            await asyncio.sleep(0.05)

    asyncio.run(watch())
    assert beats > 2
    assert view.snapshot().png != first


def test_waiting_ends_with_the_view(source: StoredSamples) -> None:
    view = live.view("wave", source, every_s=0.1)
    threading.Timer(0.2, view.stop).start()
    view.wait(60)
    asyncio.run(view.run_for(60))
    assert not view.running


def test_it_is_displayed_as_a_widget(source: StoredSamples) -> None:
    view = live.view("wave", source, every_s=0.1)
    bundle = view._repr_mimebundle_()
    assert bundle[VIEW_MIME]["model_id"] == view.controls.box.model_id
    assert bundle["text/plain"] == "live view 'wave' of GPU utilisation"


def test_headless_it_is_a_picture_and_ends(source: StoredSamples, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(named.HEADLESS, "1")
    monkeypatch.setattr(named, "HEADLESS_S", 0.5)
    view = live.view("wave", source, every_s=0.1)
    data, about = view._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert VIEW_MIME not in data
    assert "GPU utilisation: default/a gpu 0" in about["image/png"]["alt"]
    view.wait(60)
    assert sampler_threads() == []


def test_the_menu_offers_what_was_asked_for_first(source: StoredSamples) -> None:
    view = live.view("why", source, quantities=["power", "tensor activity"])
    assert view.controls.metric.options[:2] == ("power, tensor activity", "GPU utilisation")
    view.wait_for_data()
    assert list(view.frames) == ["power", "tensor activity"]


def test_promql_and_matchers(source: StoredSamples) -> None:
    live.view("sum", source, "sum by (pod) (DCGM_FI_DEV_POWER_USAGE)").wait_for_data()
    live.view("some", source, "power", matchers='pod="a"').wait_for_data()
    asked = [expr for expr, *_ in source.asked]
    assert asked[0] == "sum by (pod) (DCGM_FI_DEV_POWER_USAGE)"
    assert 'DCGM_FI_DEV_POWER_USAGE{pod="a"}' in asked[-1]


def test_words_that_are_no_quantity_are_refused_with_near_names(source: StoredSamples) -> None:
    with pytest.raises(UnknownQuantity, match="GPU utilisation"):
        live.view("typo", source, "gpu utilsation")
    assert live.views() == {}


def test_snapshot_of_a_source(source: StoredSamples) -> None:
    snapshot = live.snapshot(source, quantities=["power", "DRAM activity"])
    assert snapshot._repr_png_()[0].startswith(b"\x89PNG")
    assert snapshot._repr_png_()[1] == {"alt": snapshot.alt}
    assert "power: default/a gpu 0" in snapshot.alt
    assert "DRAM activity: default/a gpu 0" in snapshot.alt
    assert "simulated: H200 trace" in snapshot.alt


def test_snapshot_of_frames(source: StoredSamples) -> None:
    frame = source.range("use", 0.0, 100.0, 1.0)
    frame.attrs |= {"metric": "GPU utilisation", "unit": "%"}
    one = live.snapshot(frame)
    assert "GPU utilisation: default/a gpu 0 0 %, default/b gpu 1 50 %" in one.alt
    holed = frame.drop(frame.index[30:60])
    assert live.snapshot(holed).png != one.png
    assert live.snapshot([frame, frame]).alt.count("GPU utilisation") == 2


def test_snapshot_of_an_empty_frame() -> None:
    nothing = pd.DataFrame(index=pd.DatetimeIndex([], tz="UTC", name="time"))
    assert "no data" in live.snapshot(nothing).alt


def test_a_process_ends_with_its_views_running() -> None:
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from stored import two_pods
from gpuworkshop import live
for name in "abc":
    live.view(name, two_pods(), every_s=0.05).wait_for_data()
print("alive")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "alive\n", "")
