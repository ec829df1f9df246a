"""A source of samples that a test can stop, and a clock that a test moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpuworkshop.errors import PrometheusUnreachable
from gpuworkshop.live.charts import Panel
from gpuworkshop.live.liveview import LiveView
from gpuworkshop.metrics.frames import wide

START = 1_764_543_600.0
Wave = Callable[[np.ndarray], np.ndarray]


def labels(pod: str, gpu: int = 0, **more: str) -> dict[str, str]:
    return {"namespace": "default", "pod": pod, "container": "main", "node": "n1", "gpu": str(gpu), **more}


def square(times: np.ndarray) -> np.ndarray:
    """20 s on, 20 s off, on the absolute clock."""
    return np.where(times % 40 < 20, 98.0, 0.0)


class StoredSamples:
    """Answers as a PrometheusReader does, from functions of time. `fault` is raised while it is set."""

    def __init__(self, series: Sequence[tuple[dict[str, str], Wave]]) -> None:
        self.series = list(series)
        self.asked: list[tuple[str, float, float]] = []
        self.fault: BaseException | None = None
        self.attrs: dict[Any, Any] = {"simulated": "H200 trace"}

    def range(
        self,
        expr: str,
        start: Any,
        end: Any,
        step: Any,
        *,
        labels: Sequence[str] = (),
        empty_ok: bool = False,
    ) -> pd.DataFrame:
        self.asked.append((expr, start, end))
        if self.fault:
            raise self.fault
        times = np.arange(round((end - start) / step) + 1) * step + start
        values = np.array([wave(times) for _, wave in self.series]).reshape(len(self.series), len(times))
        frame = wide(times, values, [names for names, _ in self.series])
        frame.attrs = {**self.attrs}
        return frame


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def unreachable() -> PrometheusUnreachable:
    return PrometheusUnreachable(
        "nothing answers at http://127.0.0.1:9", step="asking Prometheus", todo="start it"
    )


def two_pods() -> StoredSamples:
    """One with a wave on gpu 0, one at 50 on gpu 1."""
    return StoredSamples(
        [(labels("a", 0), square), (labels("b", 1), lambda times: np.full(len(times), 50.0))]
    )


def still_view(source: StoredSamples, clock: Clock, **more: Any) -> LiveView:
    """A view without its thread, on the test's clock: `tick()` is what the thread would call."""
    choices = {
        "power": [Panel("power", "W", "power")],
        "both": [Panel("power", "W", "power"), Panel("use", "%", "use")],
    }
    about: dict[str, Any] = {"window_s": 60.0, "every_s": 1.0, "clock": clock, **more}
    return LiveView("test", source, choices, **about)
