"""The rehearsal's report: one HTML page with every notebook's outputs and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Protocol

import nbformat
from nbconvert import HTMLExporter

from gpuworkshop.workshop.lessons import Lesson

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222 }
body { max-width: 1000px; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse }
td, th { padding: .2em .8em; text-align: left; border-bottom: 1px solid #ddd }
pre { background: #f6f6f6; padding: .6em; overflow-x: auto; white-space: pre-wrap }
img { max-width: 100% }
.jp-OutputArea-output, .output_area { overflow-x: auto }
.jp-InputPrompt, .jp-OutputPrompt, .prompt, .anchor-link { display: none }
details > summary { font-size: 1.4em; cursor: pointer; margin: 1em 0 .5em }
"""


class Result(Protocol):
    """What the report tells of one notebook."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def ok(self) -> bool: ...  # noqa: D102
    @property
    def seconds(self) -> float: ...  # noqa: D102
    @property
    def error(self) -> str: ...  # noqa: D102


def write_report(
    path: Path, results: Sequence[Result], notebooks: Iterable[tuple[Lesson, nbformat.NotebookNode]]
) -> None:
    """Write the page to `path`; it needs no other file."""
    rows = "".join(
        f"<tr><td>{'✔' if r.ok else '✘'}</td><td>{escape(r.name)}</td><td>{r.seconds:.1f} s</td>"
        f"<td>{escape(r.error)}</td></tr>"
        for r in results
    )
    exporter = HTMLExporter(template_name="basic")
    bodies = "".join(
        f"<details open><summary>{escape(lesson.file)}</summary>"
        f"{exporter.from_notebook_node(notebook)[0]}</details>"
        for lesson, notebook in notebooks
    )
    when = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    path.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Rehearsal {when}</title>'
        f"<style>{_STYLE}</style><h1>Rehearsal of {when}</h1>"
        f"<table><tr><th></th><th>notebook</th><th>time</th><th>what went wrong</th></tr>{rows}</table>"
        f"{bodies}</html>",
        encoding="utf-8",
    )
