"""The file that says what runs on a node's GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpuworkshop.errors import LabError
from gpuworkshop.lab.simulation import SimulatedNode

GPUS = [
    {"index": 0, "model": "H200", "pods": [{"namespace": "a", "pod": "one", "load": "training"}]},
    {"index": 1, "model": "H200", "pods": []},
    {"index": 2, "model": "H200", "pods": [{"pod": "two"}, {"namespace": "a", "pod": "one"}]},
]


@pytest.fixture
def node(tmp_path: Path) -> SimulatedNode:
    node = SimulatedNode(tmp_path / "with space" / "gpu-node-1.yaml")
    node.replace(GPUS)
    return node


def test_the_node_is_named_as_its_file(node: SimulatedNode) -> None:
    assert node.name == "gpu-node-1"
    assert node.read() == GPUS


def test_pods_are_told_with_each_gpu_that_they_hold(node: SimulatedNode) -> None:
    assert node.pods() == [("a", "one", 0), ("default", "two", 2), ("a", "one", 2)]


def test_writing_the_same_again_does_not_touch_the_file(node: SimulatedNode) -> None:
    before = node.path.stat()
    node.replace(GPUS)
    assert node.path.stat() == before
    node.replace(GPUS[:1])
    assert node.path.stat().st_ino != before.st_ino


def test_a_broken_file_is_written_anew(node: SimulatedNode) -> None:
    node.path.write_text("{", encoding="utf-8")
    node.replace(GPUS)
    assert node.read() == GPUS


def test_entries_are_whole_gpus(node: SimulatedNode) -> None:
    assert yaml.safe_load(node.entries([("default", "two")])) == GPUS[2:]
    assert yaml.safe_load(node.entries([("a", "one")])) == [GPUS[0], GPUS[2]]
    assert node.entries([("b", "one")]) == ""


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "just words",
        "- 1",
        "index: 0",
        "",
        "- index: abc",
        "- {index: 0, pods: 7}",
        "- {index: 0, pods: [5]}",
        "- {index: 0, pods: [{namespace: a}]}",
    ],
)
def test_broken_file_is_named(node: SimulatedNode, text: str) -> None:
    node.path.write_text(text, encoding="utf-8")
    with pytest.raises(LabError, match="cannot be read"):
        node.pods()


def test_file_that_is_no_text_is_named(node: SimulatedNode) -> None:
    node.path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LabError, match="cannot be read"):
        node.pods()
