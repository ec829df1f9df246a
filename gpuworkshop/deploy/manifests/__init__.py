"""The workshop's manifests, one YAML file each; they lie here to be read, and to be applied by hand too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent


def path(name: str) -> Path:
    """The file of the manifest `name`."""
    return FOLDER / f"{name}.yaml"


def load(name: str) -> list[dict[str, Any]]:
    """The objects of the manifest `name`."""
    return list(yaml.safe_load_all(path(name).read_text(encoding="utf-8")))
