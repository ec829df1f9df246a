"""EC2 instance types and their GPUs: what a machine of each has, from the tables beside this file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from gpuworkshop.errors import ClusterConfigError


@dataclass(frozen=True)
class InstanceType:
    """A type of machine; `gpu_model` is "" for one without GPUs, `pods` how many pods EKS lets it run."""

    name: str
    cpus: int
    memory_gib: float
    gpus: int
    gpu_model: str
    pods: int


@dataclass(frozen=True)
class GpuModel:
    """A model of GPU, as GPU feature discovery describes it; `memory` in MiB, `compute` such as "9.0"."""

    product: str
    family: str
    compute: str
    memory: int
    mig: bool


def find(name: str) -> InstanceType:
    """The instance type of that name. Raises ClusterConfigError with near names."""
    if (found := _types().get(name)) is not None:
        return found
    near = get_close_matches(name, names(), n=3) or ["g5.2xlarge", "p5en.48xlarge", "m5.xlarge"]
    raise ClusterConfigError(
        f"the lab does not know the instance type {name!r}",
        step="reading the cluster configuration",
        todo=f"take one that it knows, such as {', '.join(near)}",
    )


def names() -> list[str]:
    """Every instance type that the lab knows."""
    return list(_types())


@cache
def gpu_models() -> Mapping[str, GpuModel]:
    """Every model that an instance type has, by its short name."""
    return {name: GpuModel(**about) for name, about in _read("gpus.toml").items()}


@cache
def _types() -> Mapping[str, InstanceType]:
    found = {}
    for family, about in _read("instances.toml").items():
        for size, cpus, memory, gpus, pods in about["sizes"]:
            name = f"{family}.{size}"
            found[name] = InstanceType(name, cpus, float(memory), gpus, about.get("model", ""), pods)
    return found


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath(name).read_text(encoding="utf-8"))
