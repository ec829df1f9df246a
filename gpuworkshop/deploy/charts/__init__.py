"""The charts: gpu-burn, and rehearsal stand-ins of the GPU Operator and kube-prometheus-stack for the lab."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def path(name: str) -> Path:
    """The folder of the chart `name`."""
    return FOLDER / name
