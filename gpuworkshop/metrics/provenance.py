"""Where samples come from: whether a GPU is simulated, and until when its history was made up.

Our exporter says both in series of its own, so that any reader of the same Prometheus can know. They are
asked for now and then, not with every query.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from gpuworkshop.errors import PrometheusError
from gpuworkshop.metrics import answers
from gpuworkshop.metrics.connection import Connection

RECHECK_S = 10
"""How long to believe what was heard last."""

_BACKFILLED = "max by (UUID) (last_over_time(gpuworkshop_backfilled_until_seconds[7d]))"

_Series = Sequence[Mapping[str, str]]
_T = TypeVar("_T")


class Provenance:
    """What a server's exporters say of their GPUs, by UUID. A series without UUID may be of any."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asked = -float(RECHECK_S)
        self._notes: dict[str, str] = {}
        self._until: dict[str, float] = {}

    def simulated(self, series: _Series) -> str:
        """The note of these GPUs, such as "H200 trace"; "" for real ones."""
        self._refresh()
        return ", ".join(sorted(set(_of(series, self._notes))))

    def backfilled_before(self, series: _Series) -> datetime | None:
        """Until when at least one of these series was made up; None if all were scraped."""
        self._refresh()
        until = max(_of(series, self._until), default=None)
        return None if until is None else datetime.fromtimestamp(until, UTC)

    def _refresh(self) -> None:
        if time.monotonic() - self._asked < RECHECK_S:
            return
        self._asked = time.monotonic()
        try:
            # The index alone: no sample is read where nothing is simulated.
            found = self._connection.get(
                "series", list[dict[str, str]], {"match[]": "gpuworkshop_simulated_info"}
            )
            self._notes = {each.get("UUID", ""): each.get("note", "") for each in found}
            self._until = self._ask_until() if self._notes else {}
        except (PrometheusError, *answers.BROKEN):
            return

    def _ask_until(self) -> dict[str, float]:
        data, _ = self._connection.post("query", {"query": _BACKFILLED}, answers.Instant)
        return {each.metric.get("UUID", ""): float(each.points()[-1, 1]) for each in data.series()}


def _of(series: _Series, known: Mapping[str, _T]) -> list[_T]:
    seen = {each.get("UUID") for each in series}
    return [value for uuid, value in known.items() if {uuid, None} & seen]
