"""How long the workshop takes to start: `python benchmarks/start.py`.

The tools are in the cache and the virtual environment is there, as after a first `./run.sh`; the state is a
fresh one. Timed are the first `gpuworkshop up`, the second, and, in a Python of its own as a notebook has
it, the time from the lab's start to the first point of a pod's series in a DataFrame.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from gpuworkshop import settings as settings_module
from gpuworkshop.metrics import PrometheusReader
from gpuworkshop.processes import groups
from gpuworkshop.settings import Settings
from gpuworkshop.workshop import Workshop

QUERY = 'DCGM_FI_DEV_GPU_UTIL{pod!=""}'


def fresh(settings: Settings, folder: str) -> Settings:
    state = Path(folder, "state")
    state.mkdir()
    (state / "tools").symlink_to(settings.tools.resolve())
    return replace(settings, state=state)


def up(settings: Settings) -> float:
    began = time.perf_counter()
    where = {"GPUWORKSHOP_STATE": str(settings.state), "GPUWORKSHOP_HOME": str(settings.root)}
    command = [sys.executable, "-m", "gpuworkshop", "up"]
    subprocess.run(command, env={**os.environ, **where}, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def first_point(settings: Settings, history: bool) -> tuple[float, float]:
    """Seconds until the lab is healthy, and from then on until a pod's first point is in a DataFrame."""
    ws = Workshop.open("lab", settings)
    pods = ws.step("three-pods")
    pods.apply()
    if history:
        pods.give_history(900)
    began = time.perf_counter()
    ws.target.up()
    healthy = time.perf_counter()
    with PrometheusReader(ws.target.prometheus_url) as reader:
        while True:
            frame = reader.range(QUERY, time.time() - 60, time.time(), 1.0, empty_ok=True)
            if frame.shape[1]:
                return healthy - began, time.perf_counter() - healthy
            time.sleep(0.05)


def main() -> None:
    settings = settings_module.load()
    print("| what | s |\n|---|---|")
    for history in (True, False):
        with tempfile.TemporaryDirectory() as folder:
            own = fresh(settings, folder)
            try:
                healthy, point = first_point(own, history)
            finally:
                groups.stop(own)
        made = "with" if history else "without"
        print(f"| lab healthy ({made} back-filled history) | {healthy:.1f} |")
        print(f"| from then to the first point of a pod ({made} it) | {point:.1f} |")
    with tempfile.TemporaryDirectory() as folder:
        own = fresh(settings, folder)
        try:
            for name in ("first", "second"):
                print(f"| {name} `gpuworkshop up` | {up(own):.1f} |")
        finally:
            groups.stop(own)


main()
