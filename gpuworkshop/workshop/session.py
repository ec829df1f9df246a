"""`Workshop`: what a notebook holds in its hand.

It owns no state of its own: steps look at the world, so any number of notebooks, kernels and terminals
can hold one at the same time.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from gpuworkshop import settings as settings_module
from gpuworkshop.errors import UnknownStep
from gpuworkshop.settings import Settings
from gpuworkshop.targets import Target, open_target
from gpuworkshop.workshop import lessons
from gpuworkshop.workshop.cluster_steps import DevicePlugin, Nodes
from gpuworkshop.workshop.exporter_steps import GpuOperator, PodShares
from gpuworkshop.workshop.lab_steps import TargetUp
from gpuworkshop.workshop.pod_steps import GpuBurn, ThreePods
from gpuworkshop.workshop.sharing_steps import TimeSlicing, TwoPods
from gpuworkshop.workshop.steps import Step
from gpuworkshop.workshop.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd
    from ipywidgets import Widget

    from gpuworkshop.live import LiveView
    from gpuworkshop.metrics import PrometheusReader
    from gpuworkshop.metrics.catalog import Quantity
    from gpuworkshop.workshop.quiz import Quiz


class Workshop:
    """The workshop on one target: `ws = Workshop.open()`."""

    def __init__(self, target: Target, settings: Settings) -> None:
        self.target = target
        self.settings = settings
        self._reader: PrometheusReader | None = None
        makers = (
            *(TargetUp, Nodes, DevicePlugin, GpuOperator, ThreePods, GpuBurn),
            *(TimeSlicing, TwoPods, PodShares),
        )
        steps: list[Step] = [make(target) for make in makers]
        self.steps: Mapping[str, Step] = {step.name: step for step in steps}

    @classmethod
    def open(cls, target: str | None = None, settings: Settings | None = None) -> Workshop:
        """The workshop on `target` (default: TARGET in `.env`). Raises SettingsError.

        Nothing is started: `ws.step("lab").apply()` does that, or `./run.sh`.
        """
        settings = settings or settings_module.load()
        return cls(open_target(target or settings.target, settings), settings)

    def __repr__(self) -> str:
        return f"Workshop on {self.target.name!r}; steps: {', '.join(self.steps)}"

    def step(self, name: str) -> Step:
        """The step of that name. Raises UnknownStep with near names."""
        if name in self.steps:
            return self.steps[name]
        near = get_close_matches(name, self.steps, n=1) or list(self.steps)
        raise UnknownStep(
            f"there is no step {name!r}",
            step="looking for a step",
            todo=f"did you mean {' or '.join(repr(n) for n in near)}?",
        )

    def panel(self, name: str) -> Widget:
        """The step of that name as a widget: a button for each verb, and the verdict below."""
        from gpuworkshop.workshop.panel import panel

        return panel(self.step(name))

    def health(self) -> Verdict:
        """Is the target up, and do fresh samples arrive?"""
        step = self.steps["lab"]
        running = step.check()
        return step.verify() if running.ok else running

    def catch_up(self, name: str) -> Verdict:
        """Bring the world to where the notebook `name` starts; may be called again at any time.

        In the lab, loads that this sets going get an hour of history, marked as back-filled. Raises
        UnknownStep. What goes wrong on the way is told in the verdict.
        """
        lesson = lessons.find(name)
        proofs = []
        for step in map(self.step, lesson.needs):
            for done in (step.apply(), step.have_history(lesson.history_s)):
                if not done.ok:
                    return done
        for step in map(self.step, lesson.needs):
            proofs.append(step.verify())
            if not proofs[-1].ok:
                return proofs[-1]
        seen = "; ".join(proof.seen for proof in proofs)
        return Verdict(True, f"Caught up to {lesson.name}", seen)

    @property
    def prometheus(self) -> PrometheusReader:
        """A reader of the target's Prometheus, wherever that answers now. Raises LabNotRunning."""
        from gpuworkshop.metrics import PrometheusReader

        url = self.target.prometheus_url
        if self._reader is None or self._reader.url != url:
            self._reader = PrometheusReader(url)
        return self._reader

    def quantity(self, name: str) -> Quantity:
        """What the catalogue knows of a metric: title, unit, meaning, names in each release.

        `name` is plain English or DCGM's own. Raises UnknownQuantity with near names.
        """
        from gpuworkshop.metrics import catalog

        return catalog.find(name)

    def range(self, expr: str, *, last: str = "10m", step: str = "1s") -> pd.DataFrame:
        """PromQL over the last seconds, minutes or hours (`30s`, `10m`, `1h`), one row each `step`."""
        now = time.time()
        return self.prometheus.range(expr, now - _seconds(last), now, step)

    def table(self, quantities: Sequence[str], *, matchers: str = "", over: str = "10s") -> pd.DataFrame:
        """The mean of each quantity over the time `over` until now: a row a pod, a column a quantity."""
        import pandas as pd

        columns = {}
        for quantity in map(self.quantity, quantities):
            now = time.time()
            frame = self.prometheus.range(quantity.promql(matchers), now - _seconds(over), now, 1.0)
            unit, size = _READABLE.get(quantity.unit, (quantity.unit, 1.0))
            columns[f"{quantity.title} ({unit})"] = _by_pod(frame.mean() / size)
        return pd.DataFrame(columns).sort_index().round(2)

    def waves(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The wave of each column of `frame`: a row a pod, rounded for reading.

        `gpuworkshop.metrics.waves.table` has the full figures.
        """
        from gpuworkshop.metrics import waves

        return _by_pod(waves.table(frame)).round(2)

    def live(
        self, what: str | Sequence[str], *, matchers: str = "", name: str = "live", window_s: float = 120.0
    ) -> LiveView:
        """A live picture of a quantity ("gpu utilisation") or PromQL, or of several below each other.

        `matchers` choose the series (`namespace="default"`). A view of the same `name` is replaced. Raises
        LabNotRunning, and UnknownQuantity with near names.
        """
        from gpuworkshop import live

        one, several = (what, ()) if isinstance(what, str) else ("", what)
        return live.view(name, self.prometheus, one, quantities=several, matchers=matchers, window_s=window_s)

    def kubectl(self, line: str, *, stdin: str = "", grep: str = "") -> None:
        """Print `kubectl LINE` and what it answers; with `grep` only the lines that have this text in them.

        `line` is split as a shell would, and no shell sees it. `stdin` is what `-f -` reads.
        """
        shown = f"$ kubectl {line}" + (f" | grep {shlex.quote(grep)}" if grep else "")
        print(shown)
        said = self.target.kubectl.say(*shlex.split(line), stdin=stdin)
        print("\n".join(text for text in said.splitlines() if grep in text))

    def helm(self, line: str) -> None:
        """Print `helm LINE` and what it answers; the line is split as a shell would, and no shell sees it."""
        print(f"$ helm {line}")
        print(self.target.helm.say(*shlex.split(line)))

    def stop_live(self) -> None:
        """Stop every live picture of this notebook; the last frames stay."""
        from gpuworkshop import live

        live.stop_all()

    def close(self) -> None:
        """Stop the live pictures, and let go of the connection to Prometheus. What runs goes on."""
        self.stop_live()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def quiz(self, name: str) -> Quiz:
        """The question of that name, with buttons: guess first, then read why. Raises UnknownStep."""
        from gpuworkshop.workshop import quiz

        return quiz.find(name)


_READABLE = {"B/s": ("GB/s", 1e9)}
_T = TypeVar("_T", "pd.Series[float]", "pd.DataFrame")


def _by_pod(rows: _T) -> _T:
    """Rows of the wide frame's columns, with `namespace/pod` for an index."""
    labels = rows.index.to_frame(index=False)
    return rows.set_axis(labels["namespace"] + "/" + labels["pod"], axis=0).rename_axis("pod")


def _seconds(length: str) -> float:
    from gpuworkshop.metrics.times import duration_milliseconds

    return duration_milliseconds(length) / 1000
