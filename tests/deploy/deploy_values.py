"""What tests of the charts share: helm's rendering, and the keys of a values file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from gpuworkshop.deploy import charts

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("GPUWORKSHOP_SHARED", ROOT.parent / "shared"))
Rendered = dict[tuple[str, str], dict[str, Any]]


def helm(binary: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run helm without a cluster."""
    command = [binary, *arguments]
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60, check=False)


def render(
    binary: Path, chart: str, *arguments: str, release: str = "", namespace: str = "gpu-operator"
) -> Rendered:
    """The objects that a chart makes, by kind and name."""
    path = charts.path(chart)
    done = helm(binary, "template", release or chart, path, "--namespace", namespace, *arguments)
    assert done.returncode == 0, done.stderr
    objects = [each for each in yaml.safe_load_all(done.stdout) if each]
    found = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    assert len(found) == len(objects), "no object is there twice"
    return found


def leaves(values: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """`a.b.c` for every value that is no mapping, or an empty one."""
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}"
