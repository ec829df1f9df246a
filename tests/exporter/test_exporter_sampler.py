"""The sampling thread: a reading that fails or is late must never be shown as the present."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpuworkshop.exporter.devices import Device, Family, Pod, Reading
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.http1 import Request
from gpuworkshop.exporter.rendering import Renderer
from gpuworkshop.exporter.sampler import Sampler, Snapshot
from gpuworkshop.exporter.schema import SCHEMAS
from gpuworkshop.exporter.server import Pages

DEVICE = Device(0, "GPU-1", "NVIDIA H200", "00000000:01:00.0", "580")


class Backend:
    """Counts its readings; can be told to fail."""

    def __init__(self) -> None:
        self.readings = 0
        self.read_again = threading.Semaphore(0)
        self.fails = False

    def read(self, at: float) -> Sequence[Reading]:
        self.readings += 1
        self.read_again.release()
        if self.fails:
            raise OSError("the GPU is lost")
        return [Reading(DEVICE, {Field.POWER: float(self.readings)})]

    def families(self) -> Sequence[Family]:
        return []

    def pods(self, device: Device) -> Sequence[Pod]:
        return []


@pytest.fixture
def backend() -> Backend:
    return Backend()


def test_the_first_snapshot_is_there_at_once_and_new_ones_follow(backend: Backend) -> None:
    with Sampler(backend, backend, 0.01) as sampler:
        first = sampler.snapshot
        assert first.devices[0].reading.values == {Field.POWER: 1}
        for _ in range(5):
            assert backend.read_again.acquire(timeout=10)
        assert sampler.snapshot is not first
    readings = backend.readings
    assert not [thread for thread in threading.enumerate() if thread.name == "sampler"]
    assert backend.readings == readings


def test_a_first_reading_that_fails_is_raised(backend: Backend) -> None:
    backend.fails = True
    with pytest.raises(OSError, match="lost"), Sampler(backend, backend, 0.01):
        pass


def test_a_failed_reading_is_logged_and_the_next_one_taken(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    with Sampler(backend, backend, 0.01) as sampler:
        backend.fails = True
        for _ in range(4):
            assert backend.read_again.acquire(timeout=10)
        backend.fails = False
        failed = sampler.snapshot
        for _ in range(3):
            assert backend.read_again.acquire(timeout=10)
        assert sampler.snapshot.at > failed.at
    assert "the GPU is lost" in caplog.text
    ((labels, count),) = sampler.families()[0].samples
    assert dict(labels) == {"cause": "OSError"}
    assert count >= 3


def test_scrapes_are_counted_and_a_snapshot_is_rendered_once(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sampler(backend, backend, 60) as sampler:
        renderer = Renderer(SCHEMAS["4.8.4"], "node-1")
        rendered: list[float] = []
        render = renderer.render

        def counted(snapshot: Snapshot, own: Sequence[Family] = (), *, stale: bool = False) -> bytes:
            rendered.append(snapshot.at)
            return render(snapshot, own, stale=stale)

        monkeypatch.setattr(renderer, "render", counted)
        pages, scrape = Pages(sampler, renderer), Request("GET", "/metrics")
        bodies = {pages.answer(scrape).body for _ in range(5)}
        assert (len(bodies), len(rendered)) == (1, 1)
        sampler.snapshot = replace(sampler.snapshot, at=2.0)
        assert b"\ngpuworkshop_scrapes_total 5\n" in pages.answer(scrape).body
    assert len(rendered) == 2


@pytest.mark.parametrize("age_s", [0, 124, 126, 1000])
def test_a_snapshot_grows_stale(backend: Backend, age_s: float) -> None:
    with Sampler(backend, backend, 60) as sampler:
        sampler.snapshot = replace(sampler.snapshot, taken=sampler.snapshot.taken - age_s)
        assert bool(sampler.stale_s()) == (age_s > 125)


def test_when_stale_the_health_is_503_and_a_scrape_shows_no_values(backend: Backend) -> None:
    with Sampler(backend, backend, 60) as sampler:
        sampler.snapshot = replace(sampler.snapshot, taken=sampler.snapshot.taken - 130)
        pages = Pages(sampler, Renderer(SCHEMAS["4.8.4"], "node-1"))
        health, metrics = (pages.answer(Request("GET", path)) for path in ("/health", "/metrics"))
    assert (health.status, health.body) == (503, b"stale: the GPUs were last read 130 s ago\n")
    assert b"DCGM_" not in metrics.body
    assert b"gpuworkshop_sample_timestamp_seconds" in metrics.body
