"""A workshop in Jupyter: which pod uses my GPUs, and how do I see it?

`from gpuworkshop import Workshop; ws = Workshop.open()` is how every notebook starts. The import is
lazy, so that the exporter and the command line stay light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuworkshop.workshop import Workshop

__all__ = ["Workshop"]


def __getattr__(name: str) -> Any:
    if name == "Workshop":
        from gpuworkshop.workshop import Workshop

        return Workshop
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
