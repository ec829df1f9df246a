"""How long a frame of a live view takes: `python benchmarks/live_frame.py`.

A frame is what the sampler's thread does at each beat apart from asking the source: draw and pack as PNG.
300 points a series, waves of 20 s on and off under noise, which is much to draw.
The processor's time is told as well: it counts where others use the machine.
"""

from __future__ import annotations

import json
import platform
import statistics
import time

import numpy as np

from gpuworkshop.live.charts import Chart
from gpuworkshop.live.figure import LiveFigure

POINTS, FRAMES = 300, 20
START = 1_764_543_600.0


def chart(series: int, moved_s: int) -> Chart:
    random = np.random.default_rng(series)
    times = START + moved_s + np.arange(float(POINTS))
    on = (times[:, None] + 7 * np.arange(series)) % 40 < 20
    values = np.where(on, 96.0, 2.0) + random.normal(0, 1, (POINTS, series))
    keys = [(("namespace", "default"), ("pod", f"train-{i}"), ("gpu", str(i % 8))) for i in range(series)]
    return Chart("GPU utilisation", "%", times, keys, values, {"simulated": "H200 trace"})


def measure(series: int, panels: int) -> dict[str, float]:
    figure, took, used, size = LiveFigure(), [], [], 0
    for frame in range(FRAMES):
        charts = [chart(series, frame)] * panels
        end = float(charts[0].times[-1])
        began, busy = time.perf_counter(), time.thread_time()
        png = figure.draw(charts, end - POINTS + 1, end)
        took.append(1000 * (time.perf_counter() - began))
        used.append(1000 * (time.thread_time() - busy))
        size = len(png)
    about = {"series": series, "panels": panels, "first_ms": round(took[0]), "kib": size // 1024}
    medians = {"median_ms": statistics.median(took[1:]), "median_cpu_ms": statistics.median(used[1:])}
    return about | {name: round(value, 1) for name, value in medians.items()}


def main() -> None:
    print(f"Python {platform.python_version()}, {FRAMES} frames of {POINTS} points a series")
    for series, panels in ((3, 1), (3, 3), (8, 1), (50, 1), (200, 1)):
        print(json.dumps(measure(series, panels)))


if __name__ == "__main__":
    main()
