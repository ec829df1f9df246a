"""Live plots in a notebook, and static ones for when it is saved.

    view = live.view("first wave", reader, "gpu utilisation")   # a cell's last value: controls and picture
    live.view("why", reader, quantities=["power", "tensor activity", "DRAM activity"])
    view.snapshot()                                              # a PNG that stays in the notebook
    live.snapshot(frame)

A view is a sampler thread, a matplotlib figure on Agg and an ipywidgets image. `named` keeps views by name;
`liveview` ties together `beat` (the thread), `feed` (asks the source for what is missing, into a `ring`),
`figure` (draws, with `series`' styles, `legend` and `png`), `controls` and `status`; `still` is what can be
saved, and `charts` what they all speak of.
"""

from __future__ import annotations

from gpuworkshop.live.charts import Source
from gpuworkshop.live.liveview import LiveView
from gpuworkshop.live.named import stop_all, view, views
from gpuworkshop.live.still import Snapshot, snapshot

__all__ = ["LiveView", "Snapshot", "Source", "snapshot", "stop_all", "view", "views"]
