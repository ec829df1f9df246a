"""Run in a mount namespace of its own, on a small disk: fill it while the lab runs, make room, and tell.

`python full_disk.py STATE` prints one JSON object with what was seen.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from gpuworkshop import settings as settings_module
from gpuworkshop.errors import WorkshopError
from gpuworkshop.processes import groups
from gpuworkshop.workshop import Workshop


def until(so: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not so() and time.monotonic() < deadline:
        time.sleep(0.3)
    return so()


def fill(path: Path) -> None:
    with path.open("wb") as file:
        try:
            while True:
                file.write(b"\0" * 2**20)
        except OSError:
            return


def main(state: Path) -> None:
    settings = settings_module.load()
    ws = Workshop.open("lab", settings)
    seen: dict[str, object] = {"up": ws.step("lab").apply().ok}
    try:
        seen["fresh"] = ws.health().ok
        stored = time.time()
        ballast = state / "ballast"
        fill(ballast)
        seen["noticed"] = until(lambda: not ws.step("lab").check().ok)
        seen["said"] = str(ws.step("lab").check())
        try:
            groups.ensure("lab", settings)
        except WorkshopError as error:
            seen["refused"] = str(error)
        ballast.unlink()
        seen["recovered"] = until(lambda: ws.health().ok)
        kept = ws.prometheus.range("up", stored - 2, stored, 1.0)
        seen["kept"] = bool(kept.notna().to_numpy().any())
    finally:
        groups.stop(settings)
    print(json.dumps(seen))


main(Path(sys.argv[1]))
