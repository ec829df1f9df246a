"""The machine's own pip, with its own configuration of indexes, proxies and certificates."""

from __future__ import annotations

import sys
from pathlib import Path

from gpuworkshop.processes import capture

LIMIT_S = 600.0
_HASTE = ("--timeout", "10", "--retries", "1")  # without an index, fall through in seconds
_QUIET = ("--quiet", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:")


def run(verb: str, *arguments: str | Path) -> None:
    """`pip VERB …`. Raises ToolError with pip's own words."""
    command = (sys.executable, "-m", "pip", verb, *_QUIET, *_HASTE, *arguments)
    capture.run(command, LIMIT_S, name="pip")
