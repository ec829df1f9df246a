"""The table of instance types: public facts, and models that the exporter knows."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import gpuworkshop
from gpuworkshop.errors import ClusterConfigError
from gpuworkshop.lab.nodes import instances

MODELS = Path(gpuworkshop.__file__).parent / "exporter" / "models.toml"


def exporter_models() -> dict[str, Any]:
    return tomllib.loads(MODELS.read_text())


@pytest.mark.parametrize(
    ("name", "cpus", "memory", "gpus", "model", "pods"),
    [
        ("g4dn.xlarge", 4, 16, 1, "T4", 29),
        ("g4dn.12xlarge", 48, 192, 4, "T4", 234),
        ("g5.2xlarge", 8, 32, 1, "A10G", 58),
        ("g5.48xlarge", 192, 768, 8, "A10G", 345),
        ("g6.24xlarge", 96, 384, 4, "L4", 737),
        ("g6e.xlarge", 4, 32, 1, "L40S", 58),
        ("p4d.24xlarge", 96, 1152, 8, "A100", 737),
        ("p5.48xlarge", 192, 2048, 8, "H100", 100),
        ("p5.4xlarge", 16, 256, 1, "H100", 118),
        ("p5en.48xlarge", 192, 2048, 8, "H200", 198),
        ("m5.xlarge", 4, 16, 0, "", 58),
        ("t3.medium", 2, 4, 0, "", 17),
        ("c5.9xlarge", 36, 72, 0, "", 234),
        ("r5.large", 2, 16, 0, "", 29),
    ],
)
def test_facts(name: str, cpus: int, memory: float, gpus: int, model: str, pods: int) -> None:
    assert instances.find(name) == instances.InstanceType(name, cpus, memory, gpus, model, pods)


@pytest.mark.parametrize(
    "family",
    ["g4dn", "g5", "g6", "g6e", "p4d", "p5", "p5en", "t3", "m5", "m6i", "m7i", "c5", "c6i", "c7i", "r5"],
)
def test_every_family_is_known_and_only_those_for_gpus_have_some(family: str) -> None:
    types = [found for found in map(instances.find, instances.names()) if found.name.startswith(f"{family}.")]
    assert types
    for found in types:
        assert bool(found.gpus) == bool(found.gpu_model) == (family[0] in "gp")
        assert found.cpus * 2 <= found.memory_gib * 2 <= found.cpus * 32
        assert found.pods >= 8


def test_models_are_those_of_the_exporter() -> None:
    """As the lab may not import the exporter, what both say is held together here."""
    known, here = exporter_models(), instances.gpu_models()
    assert here.keys() == known.keys()
    for name, model in here.items():
        assert model.product == known[name]["name"].replace(" ", "-")
        assert model.memory == known[name]["memory_mib"]
        assert model.mig == bool(known[name]["mig_slices"])
    assert {instances.find(name).gpu_model for name in instances.names()} - {""} == set(known)


@pytest.mark.parametrize(
    ("asked", "near"), [("g5.2xlrage", "g5.2xlarge"), ("p5en.24xlarge", "p5en.48xlarge"), ("", "m5.xlarge")]
)
def test_unknown_type_is_told_with_near_names(asked: str, near: str) -> None:
    with pytest.raises(ClusterConfigError, match="does not know the instance type") as caught:
        instances.find(asked)
    assert near in caught.value.todo
