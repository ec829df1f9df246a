"""What CloudWatch charges, read from `prices.toml` beside this file, with the date when it was checked."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Prices:
    """US dollars in `region`; `checked` is a month.

    `tiers` are (up to how many metrics in all, dollars each a month), in order.
    """

    checked: str
    source: str
    region: str
    hours_a_month: int
    tiers: tuple[tuple[float, float], ...]
    log_gigabyte: float

    def metrics(self, count: int) -> float:
        """Dollars a month for so many custom metrics."""
        total, below = 0.0, 0.0
        for up_to, each in self.tiers:
            total += max(0.0, min(count, up_to) - below) * each
            below = up_to
        return total


@cache
def load() -> Prices:
    """The table."""
    table = tomllib.loads(files("gpuworkshop.cwagent").joinpath("prices.toml").read_text(encoding="utf-8"))
    return Prices(
        checked=table["checked"],
        source=table["source"],
        region=table["region"],
        hours_a_month=table["hours_a_month"],
        tiers=tuple((tier.get("up_to", float("inf")), tier["each"]) for tier in table["metrics"]),
        log_gigabyte=table["logs"]["gigabyte"],
    )
