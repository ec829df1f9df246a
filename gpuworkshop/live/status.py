"""The line below the picture: how fresh it is, of how many pods, and what is wrong, since when."""

from __future__ import annotations

import time
from collections.abc import Sequence
from html import escape

from gpuworkshop.errors import WorkshopError
from gpuworkshop.live.charts import Chart
from gpuworkshop.live.figure import simulated
from gpuworkshop.live.series import pod_of

REMEMBERED_S = 60
"""How long the line still tells of an outage that is over."""


class Status:
    """Keeps the present fault and the last one; `html` says it all in one line."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self._since = 0.0
        self._over = 0.0
        self._updated: float | None = None
        self._facts: list[str] = []

    def saw(self, charts: Sequence[Chart], now: float, fault: Exception | None) -> None:
        """Take note of a poll: what it brought, or the exception that it ended in."""
        if fault and not self.fault:
            self._since = now
        if self.fault and not fault:
            self._over = now
        self.fault = fault
        if not fault:
            self._updated = now
            self._facts = [_pods(charts), *simulated(charts)]

    def html(self, now: float, pause: str = "") -> str:
        """The line; `pause` says that the view rests, and since when."""
        parts = [f"<b>{escape(pause)}</b>"] if pause else []
        if self._updated is not None:
            parts.append(f"updated {clock(self._updated)}")
        parts += [escape(fact) for fact in self._facts]
        if self.fault:
            parts.append(_alarm(f"since {clock(self._since)}: {in_words(self.fault)} Trying on."))
        elif self._over and now - self._over < REMEMBERED_S:
            parts.append(f"back since {clock(self._over)}, after an outage since {clock(self._since)}")
        return " · ".join(parts) or "starting …"


def in_words(error: Exception) -> str:
    """An exception as sentences: what was seen, and what to do."""
    if isinstance(error, WorkshopError):
        seen = f"{error.step}: {error.seen}" if error.step else error.seen
        return f"{_sentence(seen)} {_sentence(error.todo)}".strip()
    return _sentence(f"{type(error).__name__}: {error}".removesuffix(": "))


def clock(moment: float) -> str:
    """Local time, HH:MM:SS."""
    return time.strftime("%H:%M:%S", time.localtime(moment))


def _pods(charts: Sequence[Chart]) -> str:
    if not any(chart.has_data for chart in charts):
        return f"no data yet for {', '.join(chart.title for chart in charts)}"
    pods = {pod_of(key) for chart in charts for key in chart.keys} - {None}
    return f"{len(pods)} pod{'' if len(pods) == 1 else 's'}"


def _alarm(text: str) -> str:
    return f'<span role="alert" style="color:#B22222"><b>⚠</b> {escape(text)}</span>'


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[0].upper()}{text[1:]}{'' if text[-1] in '.?!' else '.'}" if text else ""
