"""Views by name: a cell that is run again replaces its view instead of starting one more.

No thread outlives the kernel: threads are daemons, and all views are stopped at exit, before the
interpreter takes apart what a drawing thread stands on.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Mapping, Sequence
from threading import Lock

from gpuworkshop.live.charts import OFFERED, Source, panel, panels_of
from gpuworkshop.live.liveview import LiveView, Panels

HEADLESS = "GPUWORKSHOP_HEADLESS"
"""Environment variable: 1 where no front end shows the notebook."""
HEADLESS_S = 180.0
"""How long a view goes on where nobody sees it."""

_views: dict[str, LiveView] = {}
_lock = Lock()


def view(
    name: str,
    source: Source,
    quantity: str = "",
    *,
    quantities: Sequence[str] = (),
    matchers: str = "",
    window_s: float = 120.0,
    every_s: float = 1.0,
) -> LiveView:
    """Start the live view `name`, in place of an older one of that name, and return it to be displayed.

    `quantity`, a name of the catalogue ("gpu utilisation") or PromQL, makes one plot; `quantities` make
    one each, below each other. `matchers` (`namespace="default"`) narrow those of the catalogue down.
    Raises UnknownQuantity with near names, and LiveError for times that make no plot.
    """
    choices = _choices(panels_of(quantity, quantities, matchers), matchers)
    lifetime_s = HEADLESS_S if os.environ.get(HEADLESS) == "1" else None
    new = LiveView(name, source, choices, window_s=window_s, every_s=every_s, lifetime_s=lifetime_s)
    with _lock:
        old = _views.get(name)
        _views[name] = new
    if old:
        old.close()
    new.start()
    return new


def views() -> Mapping[str, LiveView]:
    """The views that run, by name."""
    return {name: each for name, each in _views.items() if each.running}


def stop_all() -> None:
    """Stop every view; the last pictures stay."""
    with _lock:
        stopping = list(_views.values())
        _views.clear()
    for each in stopping:
        each.stop()


def _choices(asked: Panels, matchers: str) -> dict[str, Panels]:
    choices = {", ".join(each.title for each in asked): asked}
    for text in OFFERED:
        offered = panel(text, matchers)
        choices.setdefault(offered.title, [offered])
    return choices


atexit.register(stop_all)
