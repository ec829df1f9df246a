"""Cluster configurations, as eksctl takes them; the lab makes simulated nodes of the same files."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def path(name: str) -> Path:
    """The file of the configuration `name`."""
    return FOLDER / f"{name}.yaml"
