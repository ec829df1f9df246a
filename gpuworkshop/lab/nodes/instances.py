"""EC2 instance types: what a machine of each has, read from `instances.toml` beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from gpuworkshop.errors import ClusterConfigError


@dataclass(frozen=True)
class InstanceType:
    """A type of machine; `gpu_model` is "" for one without GPUs, `pods` how many pods it may run."""

    name: str
    cpus: int
    memory_gib: float
    gpus: int
    gpu_model: str
    pods: int


def find(name: str) -> InstanceType:
    """The instance type of that name. Raises ClusterConfigError with near names."""
    if (found := _table().get(name)) is not None:
        return found
    near = get_close_matches(name, _table(), n=3) or ["g5.2xlarge", "p5en.48xlarge", "m5.xlarge"]
    raise ClusterConfigError(
        f"the lab does not know the instance type {name!r}",
        step="reading the cluster configuration",
        todo=f"take one that it knows, such as {', '.join(near)}",
    )


@cache
def _table() -> Mapping[str, InstanceType]:
    text = files(__package__).joinpath("instances.toml").read_text(encoding="utf-8")
    found = {}
    for family, about in tomllib.loads(text).items():
        for size, cpus, memory, gpus in about["sizes"]:
            name = f"{family}.{size}"
            model = about.get("model", "") if gpus else ""
            found[name] = InstanceType(name, cpus, float(memory), gpus, model, _pods(cpus))
    return found


def _pods(cpus: int) -> int:
    """How many pods EKS lets a node run: a limit by network interfaces, told here by the number of CPUs."""
    return {2: 29, 4: 58, 8: 58}.get(cpus, 234)
