"""The committed notebooks: no outputs, and in step with their scripts."""

from __future__ import annotations

from pathlib import Path

import jupytext
import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_has_no_outputs(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_agrees_with_its_script(path: Path) -> None:
    script = jupytext.read(path.with_suffix(".py"))
    notebook = nbformat.read(path, as_version=4)
    assert [(c.cell_type, c.source) for c in script.cells] == [
        (c.cell_type, c.source) for c in notebook.cells
    ]
