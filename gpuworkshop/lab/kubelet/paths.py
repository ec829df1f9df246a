"""Paths of a container, taken below a folder of the pod's."""

from __future__ import annotations

from pathlib import Path, PurePosixPath


def inside(folder: Path, path: str) -> Path:
    """`path` taken from `folder` on, absolute or not; it cannot lead out of it."""
    parts = [part for part in PurePosixPath("/", path).parts[1:] if part != ".."]
    return folder.joinpath(*parts)
