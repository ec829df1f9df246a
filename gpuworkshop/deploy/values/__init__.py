"""The values that the workshop gives to charts, one YAML file each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent


def path(name: str) -> Path:
    """The file of the values `name`."""
    return FOLDER / f"{name}.yaml"


def load(name: str) -> dict[str, Any]:
    """The values `name`."""
    values: dict[str, Any] = yaml.safe_load(path(name).read_text(encoding="utf-8"))
    return values
