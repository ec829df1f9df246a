"""The learner's working copies of the notebooks, so that the checkout stays clean.

A copy that the learner has not touched is brought up to date when the checkout's notebook changes; one
that was touched is never overwritten.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

from gpuworkshop.settings import Settings


def refresh(settings: Settings) -> list[str]:
    """Copy what is new; returns a line for each notebook that was updated in the checkout but left alone."""
    folder = settings.notebooks
    folder.mkdir(parents=True, exist_ok=True)
    record = settings.state / "notebooks.json"
    given = _read(record)
    left_alone = []
    for source in sorted((settings.root / "notebooks").glob("*.ipynb")):
        copy, new = folder / source.name, _digest(source)
        if not copy.exists() or _digest(copy) == given.get(source.name):
            if not copy.exists() or given.get(source.name) != new:
                shutil.copyfile(source, copy)
            given[source.name] = new
        elif given.get(source.name) != new:
            left_alone.append(f"{source.name} is newer in the checkout; your changed copy stays: {copy}")
    record.write_text(json.dumps(given, indent=2), encoding="utf-8")
    return left_alone


def _read(record: Path) -> dict[str, str]:
    try:
        given = json.loads(record.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # never written, or damaged: then every copy counts as touched
        return {}
    return given if isinstance(given, dict) else {}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
