"""Reading metrics: a Prometheus server or an exporter's own page, into one wide DataFrame, and what is in it.

`PrometheusReader` reads a server, `parse_exposition` a scrape; `catalog` knows DCGM's quantities under
all their names; `frames` is the shape of every DataFrame; `waves` measures loads that go on and off.
"""

from gpuworkshop.metrics import catalog, frames, waves
from gpuworkshop.metrics.catalog import Quantity
from gpuworkshop.metrics.exposition import Family, Sample, parse_exposition
from gpuworkshop.metrics.prometheus import PrometheusReader
from gpuworkshop.metrics.waves import Wave

__all__ = [
    "Family",
    "PrometheusReader",
    "Quantity",
    "Sample",
    "Wave",
    "catalog",
    "frames",
    "parse_exposition",
    "waves",
]
