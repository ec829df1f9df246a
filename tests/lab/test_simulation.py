"""What runs on a simulated node's GPUs, and the file that says so."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from gpuworkshop.errors import LabError
from gpuworkshop.lab.simulation import Pod, SimulatedNode

WAVE = Pod("default", "gpu-burn-1", load={"kind": "wave", "on": 20, "off": 20})


@pytest.fixture
def node(tmp_path: Path) -> SimulatedNode:
    node = SimulatedNode(tmp_path / "with space" / "gpu-node-1.yaml")
    node.create("H200", 2)
    return node


def test_new_node_has_idle_gpus(node: SimulatedNode) -> None:
    assert node.name == "gpu-node-1"
    assert node.pods() == []
    assert [gpu["index"] for gpu in node.read()] == [0, 1]


def test_create_leaves_a_node_that_is_there(node: SimulatedNode) -> None:
    node.run(WAVE)
    node.create("T4", 8)
    assert [p.pod for p in node.pods()] == [WAVE]


def test_run_takes_the_first_free_gpu(node: SimulatedNode) -> None:
    assert node.run(Pod("a", "one")) == 0
    assert node.run(Pod("b", "two")) == 1
    assert [(p.pod.name, p.gpu) for p in node.pods()] == [("one", 0), ("two", 1)]


def test_running_again_updates_the_load_in_place(node: SimulatedNode) -> None:
    node.run(Pod("a", "one"))
    node.run(WAVE)
    changed = Pod(WAVE.namespace, WAVE.name, load={"kind": "matmul"})
    assert node.run(changed) == 1
    assert node.pods()[1].pod == changed


def test_running_the_same_again_does_not_touch_the_file(node: SimulatedNode) -> None:
    node.run(WAVE)
    before = node.path.stat().st_mtime_ns
    node.run(WAVE)
    assert node.path.stat().st_mtime_ns == before


def test_full_node_says_so_in_the_schedulers_words(node: SimulatedNode) -> None:
    node.run(Pod("a", "one"))
    node.run(Pod("b", "two"))
    with pytest.raises(LabError, match=r"0/1 nodes are available: 1 Insufficient nvidia\.com/gpu"):
        node.run(Pod("c", "three"))


def test_delete_frees_the_gpu(node: SimulatedNode) -> None:
    node.run(WAVE)
    assert node.delete("default", "gpu-burn-1")
    assert not node.delete("default", "gpu-burn-1")
    assert node.run(Pod("a", "one")) == 0


def test_load_may_be_a_word(node: SimulatedNode) -> None:
    gpus = node.read()
    gpus[0]["pods"] = [{"namespace": "a", "pod": "one", "load": "training"}]
    node.path.write_text(yaml.safe_dump(gpus), encoding="utf-8")
    assert node.pods()[0].pod.load == {"kind": "training"}


def test_namespace_is_default_unless_named(node: SimulatedNode) -> None:
    node.path.write_text("- {index: 0, pods: [{pod: one}]}", encoding="utf-8")
    assert node.pods()[0].pod.namespace == "default"
    assert node.delete("default", "one")


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


def test_changes_from_many_threads_are_all_kept(tmp_path: Path) -> None:
    node = SimulatedNode(tmp_path / "n.yaml")
    node.create("H200", 16)
    with ThreadPoolExecutor(8) as pool:
        gpus = set(pool.map(lambda i: node.run(Pod("a", f"pod-{i}")), range(16)))
    assert gpus == set(range(16))
    assert len(node.pods()) == 16
