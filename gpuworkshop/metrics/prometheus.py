"""Read a Prometheus server into wide DataFrames.

`PrometheusReader` asks (by `connection`), turns the answer into arrays (`answers`) and these into the one
shape that all sources share (`frames`). A range is laid on its grid of times, so that a point that is
missing is NaN in its row; a range with more points than the server gives at once is asked for in parts.
Source: the HTTP API page of Prometheus's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pandas as pd

from gpuworkshop.errors import BadAnswer, NoData, PrometheusError
from gpuworkshop.metrics import answers, catalog, frames
from gpuworkshop.metrics.connection import Connection
from gpuworkshop.metrics.near import metric_names, near
from gpuworkshop.metrics.provenance import Provenance
from gpuworkshop.metrics.times import Grid, Moment, Step

PART_POINTS = 1800
"""Points a series to ask for at once; Prometheus gives 11,000."""

_Expression = str | catalog.Quantity
_Block = tuple[list[dict[str, str]], np.ndarray]


class PrometheusReader:
    """A Prometheus server at `url`.

    `ca`: PEM file of the authority that signed its certificate; `token`: a bearer token; `auth`: user and
    password. Use it in a `with`, or close() it. All methods raise PrometheusUnreachable, BadAnswer, and
    for PromQL that Prometheus refuses QueryError. It may be used by several threads.
    """

    def __init__(
        self,
        url: str,
        *,
        ca: Path | None = None,
        token: str | None = None,
        auth: tuple[str, str] | None = None,
        timeout_s: float = 10,
    ) -> None:
        self._connection = Connection(url, ca=ca, token=token, auth=auth, timeout_s=timeout_s)
        self.url = self._connection.url
        self._provenance = Provenance(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def range(
        self,
        expr: _Expression,
        start: Moment,
        end: Moment,
        step: Step,
        *,
        labels: Sequence[str] = (),
        empty_ok: bool = False,
    ) -> pd.DataFrame:
        """PromQL, or a quantity of the catalogue, from `start` to `end`: a row each `step`.

        Raises NoData if no series has a point there, unless `empty_ok`: then the frame has no columns.
        """
        grid, asked = Grid.of(start, end, step), _Asked(expr)
        with _promised(self.url):
            blocks = list(self._blocks(grid, asked))
        series, values = blocks[0] if len(blocks) == 1 else _join(blocks)
        if not (series or empty_ok):
            raise self._no_data(asked)
        return self._labelled(frames.wide(grid.times(), values, series, labels), series, asked)

    def latest(
        self, expr: _Expression, *, labels: Sequence[str] = (), empty_ok: bool = False
    ) -> pd.DataFrame:
        """PromQL, or a quantity of the catalogue, now: one row (more for a range vector).

        Raises NoData as `range` does.
        """
        asked = _Asked(expr)
        with _promised(self.url):
            data, answer = self._connection.post("query", {"query": asked.query}, answers.Instant)
            found = asked.heard(answer, data.series())
            points = [each.points() for each in found]
            times = np.unique(np.concatenate([each[:, 0] for each in points] or [np.empty(0)]))
        series = [each.metric for each in found]
        values = np.full((len(series), len(times)), np.nan)
        for row, each in zip(values, points, strict=True):
            row[np.searchsorted(times, each[:, 0])] = each[:, 1]
        if not (series or empty_ok):
            raise self._no_data(asked)
        return self._labelled(frames.wide(times, values, series, labels), series, asked)

    def metric_names(self) -> list[str]:
        """Every metric name that this server stores, sorted."""
        with _promised(self.url):
            return sorted(self._connection.get("label/__name__/values", list[str]))

    def healthy(self) -> bool:
        """Whether it answers queries now. Raises nothing."""
        try:
            self._connection.post("query", {"query": "1"}, answers.Instant)
        except PrometheusError:
            return False
        return True

    def _blocks(self, grid: Grid, asked: _Asked) -> Iterator[_Block]:
        """The range in parts; while one is read, the server is at work on the next."""
        with ThreadPoolExecutor(1, "prometheus-reader") as ahead:
            parts = list(grid.parts(PART_POINTS))
            answer = ahead.submit(self._ask, parts[0], asked)
            for part, following in zip(parts, [*parts[1:], None], strict=True):
                data, about = answer.result()
                if following:
                    answer = ahead.submit(self._ask, following, asked)
                yield _laid_out(asked.heard(about, data.series()), part)

    def _ask(self, grid: Grid, asked: _Asked) -> tuple[answers.Matrix, answers.Answer[answers.Matrix]]:
        form = {
            "query": asked.query,
            "start": f"{grid.start / 1000:.3f}",
            "end": f"{grid.end / 1000:.3f}",
            "step": f"{grid.step / 1000:.3f}",
        }
        return self._connection.post("query_range", form, answers.Matrix)

    def _labelled(self, frame: pd.DataFrame, series: Sequence[frames.Labels], asked: _Asked) -> pd.DataFrame:
        names = {each.get("__name__", "") for each in series}
        name = names.pop() if len(names) == 1 else ""
        frame.attrs = {
            "metric": asked.title or name or asked.query,
            "unit": asked.unit or catalog.unit_of(name),
            "source": f"Prometheus {self.url}",
            "query": asked.query,
            "simulated": self._provenance.simulated(series),
            "backfilled_before": self._provenance.backfilled_before(series),
            "warnings": asked.all_warnings(),
            "infos": asked.infos,
        }
        return frame

    def _no_data(self, asked: _Asked) -> NoData:
        known = self.metric_names()
        absent = [name for name in metric_names(asked.query) if name not in known]
        alike = tuple(dict.fromkeys(name for word in absent for name in near(word, known)))
        if asked.histograms:
            todo = "it holds native histograms: ask for a number with histogram_quantile() or histogram_avg()"
        elif not known:
            todo = "this Prometheus stores nothing at all: does it have a target to scrape?"
        elif alike:
            todo = f"did you mean {' or '.join(alike)}?"
        elif absent:
            todo = f"there is no metric {' or '.join(absent)} here; metric_names() lists those that are"
        else:
            todo = "the metric exists; widen the time range, or the label matchers"
        return NoData(f"no series for {asked.query}", near=alike, step="asking Prometheus", todo=todo)


class _Asked:
    """What was asked for, and what the answers said beside their values."""

    def __init__(self, expr: _Expression) -> None:
        quantity = expr if isinstance(expr, catalog.Quantity) else None
        self.query = expr if isinstance(expr, str) else expr.promql()
        self.title = quantity.title if quantity else ""
        self.unit = quantity.unit if quantity else ""
        self.warnings: list[str] = []
        self.infos: list[str] = []
        self.histograms = 0

    def heard(self, answer: answers.Answer[Any], series: list[answers.Series]) -> list[answers.Series]:
        """Keep what this answer said; the series of it that are numbers."""
        self.warnings += answer.warnings
        self.infos += answer.infos
        numeric = [each for each in series if each.has_numbers]
        self.histograms += len(series) - len(numeric)
        return numeric

    def all_warnings(self) -> list[str]:
        """The server's own, and ours on what a frame cannot show."""
        ours = [f"{self.histograms} native histograms left out"] if self.histograms else []
        return list(dict.fromkeys([*self.warnings, *ours]))


def _laid_out(series: Sequence[answers.Series], grid: Grid) -> _Block:
    """Labels, and values of shape (series, rows of the grid)."""
    values = np.full((len(series), grid.rows), np.nan)
    for row, each in zip(values, series, strict=True):
        points = each.points()
        row[grid.places(points[:, 0])] = points[:, 1]
    return [each.metric for each in series], values


def _join(blocks: Sequence[_Block]) -> _Block:
    """Blocks that follow each other in time as one: a series keeps its row, and is NaN where it is not."""
    found: dict[tuple[tuple[str, str], ...], int] = {}
    rows = [
        [found.setdefault(tuple(sorted(each.items())), len(found)) for each in series] for series, _ in blocks
    ]
    values = np.full((len(found), sum(block.shape[1] for _, block in blocks)), np.nan)
    done = 0
    for places, (_, block) in zip(rows, blocks, strict=True):
        values[places, done : done + block.shape[1]] = block
        done += block.shape[1]
    return [dict(key) for key in found], values


@contextmanager
def _promised(url: str) -> Iterator[None]:
    """Data that is not as the HTTP API promises becomes a BadAnswer."""
    try:
        yield
    except (*answers.BROKEN, IndexError) as error:
        raise BadAnswer(
            f"{url} answered with data that the HTTP API does not promise: {error}",
            step="asking Prometheus",
            todo="is it a Prometheus, or something that only looks like one?",
        ) from error
