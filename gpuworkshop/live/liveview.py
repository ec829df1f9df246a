"""A live view: samples, draws and publishes in a thread of its own until it is stopped.

Everything that changes belongs to the sampler's thread. The controls only hold what was chosen, and each
tick reads them; what others may look at, `frame` or the picture, is replaced as a whole, never changed.
So nothing is locked, a slow source never blocks the kernel, and a view in a cell that runs keeps moving.
An exception never ends the thread: it is shown in the status line and kept in `fault`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any

import pandas as pd

from gpuworkshop.errors import LiveError, NoData
from gpuworkshop.live.beat import Beat
from gpuworkshop.live.charts import Chart, Panel, Source
from gpuworkshop.live.controls import Controls
from gpuworkshop.live.feed import Feed
from gpuworkshop.live.figure import LiveFigure
from gpuworkshop.live.status import Status, clock, in_words
from gpuworkshop.live.still import Snapshot, describe

Panels = Sequence[Panel]


class LiveView:
    """One picture that moves, with its controls; display it as a cell's last value.

    `choices` are what can be shown, by the name in the metric menu; the first one is shown first. A view
    with a `lifetime_s` stops by itself, and is displayed as a static picture: for notebooks that run
    without a front end.
    """

    def __init__(
        self,
        name: str,
        source: Source,
        choices: Mapping[str, Panels],
        *,
        window_s: float,
        every_s: float,
        lifetime_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 0 < every_s <= window_s / 2:
            raise LiveError(
                f"a window of {window_s:g} s with a sample every {every_s:g} s makes no plot",
                step=f"starting the live view {name!r}",
                todo="give every_s above 0, and a window_s of twice that or more",
            )
        self.name = name
        self._source, self._choices, self._every_s, self._clock = source, choices, every_s, clock
        self._dies_at = None if lifetime_s is None else clock() + lifetime_s
        self._beat = Beat(f"live view {name}", self.tick, every_s)
        self.controls = Controls(list(choices), window_s, self._beat.wake)
        self._status = Status()
        self._drawn, self._has_data = Event(), Event()
        self._paused_at: float | None = None
        self._shown: tuple[object, ...] = ()
        self._feeds: list[Feed] = []
        self._figure = LiveFigure()
        self._charts: list[Chart] = []
        self._png, self._span = b"", (0.0, 0.0)

    def start(self) -> None:
        """Start the sampler's thread."""
        self._beat.start()

    @property
    def running(self) -> bool:
        """Whether it goes on (paused views do)."""
        return not self._beat.ended.is_set()

    @property
    def fault(self) -> Exception | None:
        """The exception that the last poll ended in, if any; the status line tells it in words."""
        return self._status.fault

    @property
    def frame(self) -> pd.DataFrame:
        """The wide DataFrame behind the picture; behind its first axes, if there are several."""
        return next(iter(self.frames.values()), pd.DataFrame())

    @property
    def frames(self) -> Mapping[str, pd.DataFrame]:
        """The wide DataFrame behind each axes, by its title."""
        return {chart.title: chart.frame() for chart in self._charts}

    def pause(self) -> None:
        """Let the picture stand; what comes meanwhile is shown after `resume`."""
        self.controls.pause.value = True

    def resume(self) -> None:
        """Go on after `pause`."""
        self.controls.pause.value = False

    def wait_for_data(self, timeout_s: float = 10.0) -> None:
        """Block until there is a first value to see. Raises NoData after `timeout_s`, saying why."""
        if not self._has_data.wait(timeout_s):
            why = in_words(self.fault) if self.fault else "the source answers, but has no such series"
            raise NoData(
                f"no value came within {timeout_s:g} s: {why}",
                step=f"waiting for the live view {self.name!r}",
                todo="is the lab up (`./status.sh`), and does a pod use a GPU?",
            )

    def wait(self, seconds: float) -> None:
        """Block for so long, or until the view stops; the picture moves, its buttons rest."""
        self._beat.ended.wait(seconds)

    async def run_for(self, seconds: float) -> None:
        """`await` it in a cell: for so long the picture moves, and its buttons work as well."""
        end = time.monotonic() + seconds
        while self.running and (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 0.1))

    def snapshot(self, timeout_s: float = 10.0) -> Snapshot:
        """The picture as it is now, to stay in the notebook; waits up to `timeout_s` for a first value.

        Raises NoData if there is no picture at all by then.
        """
        if not (self._has_data.wait(timeout_s) or self._drawn.is_set()):
            self.wait_for_data(0)
        return Snapshot(self._png, describe(self._charts, *self._span))

    def stop(self, why: str = "stopped") -> None:
        """End the thread; the last picture stays."""
        was_running = self.running
        self._beat.stop()
        if was_running:
            self.controls.rest()
            self.controls.say(self._status.html(self._clock(), f"{why} at {clock(self._clock())}"))

    def close(self) -> None:
        """End the thread and take the widgets away."""
        self._beat.stop()
        self.controls.close()

    def tick(self) -> None:
        """Poll, draw and publish once: what the thread does at each beat."""
        try:
            self._tick()
        except Exception as error:  # noqa: BLE001 - shown in the status line instead of lost in a thread
            self._status.saw(self._charts, self._clock(), error)
            self._say()

    def _tick(self) -> None:
        now = self._clock()
        if self._dies_at is not None and now >= self._dies_at:
            self.stop("ended by itself, since no one looks,")
            return
        paused = bool(self.controls.pause.value)
        self._paused_at = (self._paused_at or now) if paused else None
        wanted = (self.controls.metric.value, self.controls.window.value)
        if not (paused and wanted == self._shown and self._drawn.is_set()):
            self._apply(*wanted)
            self._sample(self._paused_at or now)
        self._say()

    def _apply(self, metric: str, window_s: float) -> None:
        if not self._shown or self._shown[0] != metric:
            self._has_data.clear()
            panels = self._choices[metric]
            self._feeds = [Feed(p, self._source, every_s=self._every_s, window_s=window_s) for p in panels]
        elif self._shown[1] != window_s:
            for feed in self._feeds:
                feed.resize(window_s)
        self._shown = metric, window_s

    def _sample(self, now: float) -> None:
        fault = None
        for feed in self._feeds:
            try:
                feed.poll(now)
            except Exception as error:  # noqa: BLE001 - one panel's fault must not keep the others back
                fault = fault or error
        charts = [feed.chart() for feed in self._feeds]
        self._draw(charts, now)
        self._status.saw(charts, now, fault)

    def _draw(self, charts: list[Chart], now: float) -> None:
        end = now - now % self._every_s
        start = end - float(self.controls.window.value)
        png = self._figure.draw(charts, start, end)
        if not self.running:
            return
        self._charts, self._png, self._span = charts, png, (start, end)
        about = f"Live plot of {', '.join(chart.title for chart in charts)}"
        self.controls.show(png, about)
        self._drawn.set()
        if any(chart.has_data for chart in charts):
            self._has_data.set()

    def _say(self) -> None:
        if self.running:
            pause = "" if self._paused_at is None else f"paused at {clock(self._paused_at)}"
            self.controls.say(self._status.html(self._clock(), pause))

    def __repr__(self) -> str:
        return f"live view {self.name!r} of {self.controls.metric.value}"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        if self._dies_at is not None:
            return self.snapshot()._repr_mimebundle_()
        bundle = self.controls.box._repr_mimebundle_(**kwargs)
        return {**bundle, "text/plain": repr(self)}
