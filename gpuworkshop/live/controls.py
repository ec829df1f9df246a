"""The widgets of a live view: pause, window, metric; the picture; the status line.

They only hold what was chosen, and say when it changes: sampling and drawing is the sampler thread's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets as widgets
from traitlets import Unicode

from gpuworkshop.live.legend import WIDTH

WINDOWS_S = (60.0, 120.0, 300.0, 900.0)


class Picture(widgets.Image):  # type: ignore[misc]  # ipywidgets is not typed
    """An image with a title for screen readers: the widget knows no alternative text.

    The front end's view fails on a title where the model has no description, so here it has one.
    """

    description = Unicode("").tag(sync=True)


class Controls:
    """`box` holds them all; `changed` is called, in the kernel's main thread, after each choice."""

    def __init__(self, metrics: Sequence[str], window_s: float, changed: Callable[[], None]) -> None:
        self.pause = widgets.ToggleButton(
            description="Pause", icon="pause", tooltip="stop here and look; nothing is lost meanwhile"
        )
        windows = sorted({*WINDOWS_S, window_s})
        self.window = widgets.Dropdown(
            options=[(duration(seconds), seconds) for seconds in windows],
            value=window_s,
            description="Window",
            layout=widgets.Layout(width="13em"),
            style={"description_width": "initial"},
        )
        self.metric = widgets.Dropdown(
            options=list(metrics),
            description="Metric",
            layout=widgets.Layout(width="auto", max_width="32em"),
            style={"description_width": "initial"},
        )
        self.image = Picture(format="png", width=WIDTH, layout=widgets.Layout(max_width="100%"))
        self.status = widgets.HTML("starting …")
        self.box = widgets.VBox(
            [widgets.HBox([self.pause, self.window, self.metric]), self.image, self.status],
            # The margins of its children are wider than it is: without this it gets a scroll bar.
            layout=widgets.Layout(overflow="hidden"),
        )
        self.pause.observe(self._label_pause, "value")
        for control in self._choices:
            control.observe(lambda _: changed(), "value")

    @property
    def _choices(self) -> tuple[widgets.Widget, ...]:
        return self.pause, self.window, self.metric

    def show(self, png: bytes, about: str) -> None:
        """Put up a picture; the front end hears of it only if it is another one.

        `about` is what a screen reader says.
        """
        if bytes(self.image.value) != png:
            self.image.value = png
        self.image.tooltip = about

    def say(self, html: str) -> None:
        """Write the status line."""
        self.status.value = html

    def rest(self) -> None:
        """Nothing more can be chosen; the last picture stays."""
        for control in self._choices:
            control.disabled = True

    def close(self) -> None:
        """Take the widgets away, in the front end and in the kernel."""
        for widget in (*self.box.children[0].children, *self.box.children, self.box):
            for part in (getattr(widget, "style", None), widget.layout, widget):
                if part is not None:  # a box has no style
                    part.close()

    def _label_pause(self, _: object) -> None:
        paused = self.pause.value
        self.pause.description, self.pause.icon = ("Resume", "play") if paused else ("Pause", "pause")


def duration(seconds: float) -> str:
    """2 min, 90 s."""
    return f"{seconds / 60:g} min" if seconds >= 60 and seconds % 60 == 0 else f"{seconds:g} s"
