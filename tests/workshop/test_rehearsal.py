"""The notebooks, headless and top to bottom, on a real lab; and what the rehearsal says when one fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

from gpuworkshop.settings import Settings
from gpuworkshop.workshop import Workshop
from gpuworkshop.workshop.lessons import LESSONS

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]


def rehearse(own: Settings, *notebooks: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpuworkshop", "rehearse", *notebooks]
    where = {"GPUWORKSHOP_STATE": str(own.state), "GPUWORKSHOP_HOME": str(own.root)}
    return subprocess.run(command, env={**os.environ, **where}, capture_output=True, text=True, check=False)


def test_every_notebook_runs(ws: Workshop, own: Settings) -> None:
    done = rehearse(own)
    assert done.returncode == 0, done.stderr[-3000:]
    summary = json.loads((own.state / "rehearsal" / "summary.json").read_text(encoding="utf-8"))
    assert summary["ok"]
    assert [n["name"] for n in summary["notebooks"]] == [lesson.file[: -len(".ipynb")] for lesson in LESSONS]
    assert all(n["ok"] and n["seconds"] > 0 and n["error"] == "" for n in summary["notebooks"])
    report = (own.state / "rehearsal" / "report.html").read_text(encoding="utf-8")
    assert report.count("data:image/png;base64,") >= 5
    assert ws.step("lab").check().ok  # a lab that was up stays up


def test_outputs_are_proofs(ws: Workshop, own: Settings) -> None:
    done = rehearse(own, "prometheus-live")
    assert done.returncode == 0, done.stderr[-3000:]
    notebook = nbformat.read(own.state / "rehearsal" / "08-prometheus-live.ipynb", as_version=4)
    text = json.dumps(notebook.cells, ensure_ascii=False)
    assert "period 40.0 s, duty 50." in text
    assert "✘" not in text


def test_a_failing_notebook_is_named_with_cell_and_cause(own: Settings, ws: Workshop, tmp_path: Path) -> None:
    broken = replace(own, root=tmp_path)
    (tmp_path / "notebooks").mkdir()
    cells = [
        nbformat.v4.new_markdown_cell("# prose"),
        nbformat.v4.new_code_cell("from gpuworkshop import Workshop\nws = Workshop.open('lab')"),
        nbformat.v4.new_code_cell("ws.step('gpu-brun')"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbformat.write(notebook, tmp_path / "notebooks" / "00-first-wave.ipynb")
    done = rehearse(broken, "00-first-wave")
    assert done.returncode == 1
    assert "00-first-wave, cell 3: UnknownStep: " in done.stderr
    assert "did you mean 'gpu-burn'" in done.stderr
    assert "Traceback" not in done.stderr
    summary = json.loads((own.state / "rehearsal" / "summary.json").read_text(encoding="utf-8"))
    assert not summary["ok"]
    assert "cell 3" in summary["notebooks"][0]["error"]


def test_an_unknown_notebook_is_refused(own: Settings, ws: Workshop) -> None:
    done = rehearse(own, "00-first-wafe")
    assert done.returncode == 1
    assert "there is no notebook '00-first-wafe'" in done.stderr
