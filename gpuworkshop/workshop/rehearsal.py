"""Runs the notebooks headless, top to bottom, on copies, as a learner would.

Each notebook gets a kernel of its own, in an environment that tells live views to end by themselves.
What a run found goes to `summary.json`, and with the pictures to `report.html`.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from tqdm import tqdm

from gpuworkshop.errors import RehearsalFailed
from gpuworkshop.settings import Settings
from gpuworkshop.workshop.lessons import Lesson
from gpuworkshop.workshop.report import write_report

CELL_TIMEOUT_S = 300


@dataclass(frozen=True)
class Rehearsed:
    """How one notebook went. `error` is empty, or names the cell and the cause."""

    name: str
    ok: bool
    seconds: float
    error: str


def rehearse(lessons: Sequence[Lesson], settings: Settings) -> list[Rehearsed]:
    """Run `lessons` in order; write `rehearsal/summary.json` and `rehearsal/report.html` in the state folder.

    Raises RehearsalFailed, naming notebook, cell and cause, once all have run and the report is written.
    """
    folder = settings.state / "rehearsal"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    results, notebooks = [], []
    for lesson in lessons:
        copy = folder / lesson.file
        shutil.copyfile(settings.root / "notebooks" / lesson.file, copy)
        results.append(_run(lesson, copy, settings))
        notebooks.append((lesson, nbformat.read(copy, as_version=4)))
    summary = {"ok": all(r.ok for r in results), "notebooks": [asdict(r) for r in results]}
    (folder / "summary.json").write_text(json.dumps(summary, indent=2), encoding="utf-8")
    write_report(folder / "report.html", results, notebooks)
    _raise_for(results, folder)
    return results


def _run(lesson: Lesson, copy: Path, settings: Settings) -> Rehearsed:
    notebook = nbformat.read(copy, as_version=4)
    started, error = time.monotonic(), ""
    code_cells = sum(cell.cell_type == "code" for cell in notebook.cells)
    with tqdm(total=code_cells, desc=lesson.file, unit="cell") as bar:
        client = NotebookClient(
            notebook,
            timeout=CELL_TIMEOUT_S,
            kernel_name="python3",
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": str(copy.parent)}},
            on_cell_complete=lambda cell, cell_index: bar.update(),  # noqa: ARG005  (nbclient's names)
        )
        try:
            client.execute(env=_environment(settings))
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as failure:
            error = _cause(notebook, failure)
        finally:
            nbformat.write(notebook, copy)
    return Rehearsed(
        lesson.file.removesuffix(".ipynb"), not error, round(time.monotonic() - started, 1), error
    )


def _environment(settings: Settings) -> dict[str, str]:
    ipython = settings.state / "jupyter" / "ipython"
    ipython.mkdir(parents=True, exist_ok=True)
    return {
        **os.environ,
        "GPUWORKSHOP_HEADLESS": "1",
        "GPUWORKSHOP_HOME": str(settings.root),
        "GPUWORKSHOP_STATE": str(settings.state),
        "IPYTHONDIR": str(ipython),
    }


def _cause(notebook: nbformat.NotebookNode, failure: Exception) -> str:
    """`cell 7: WorkshopError: …`; cells count from 1, the prose ones too."""
    for number, cell in enumerate(notebook.cells, start=1):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                return f"cell {number}: {output.ename}: {output.evalue}"
    reached = sum(1 for cell in notebook.cells if cell.get("execution_count"))
    return f"after code cell {reached}: {type(failure).__name__}: {str(failure).strip()[-500:]}"


def _raise_for(results: Iterable[Rehearsed], folder: Path) -> None:
    failed = [f"{result.name}, {result.error}" for result in results if not result.ok]
    if failed:
        raise RehearsalFailed(
            "\n".join(failed),
            step="rehearsing",
            todo=f"open {folder / 'report.html'} to see each cell's output",
        )
