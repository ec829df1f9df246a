"""Where a tool can be fetched from: one module a kind of source in `versions.toml`.

Each has `fetch(source, into)`, which puts the tool together in the empty folder `into` and returns command
→ path in it. It raises a ToolError that says why this source cannot be used here.
"""

from __future__ import annotations

from pathlib import Path

from gpuworkshop.processes.sources import debian, python, release, wheel
from gpuworkshop.versions import DebianPackages, PythonPackage, Release, Source, Wheel


def fetch(source: Source, into: Path, *, progress: bool) -> dict[str, str]:
    """Fetch from a source of any kind; only an official release has a progress bar."""
    match source:
        case Release():
            return release.fetch(source, into, progress=progress)
        case Wheel():
            return wheel.fetch(source, into)
        case PythonPackage():
            return python.fetch(source, into)
        case DebianPackages():
            return debian.fetch(source, into)
