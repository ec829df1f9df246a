"""GPUs of a node: given to containers, offered by the device plugin, under the loads that pods name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubelet_lab import NODE_NAME, KubeletLab, in_lab, pause, shell

from gpuworkshop.exporter import gpus
from gpuworkshop.exporter import loads as exporter_loads
from gpuworkshop.lab.api.kinds import CONFIG_MAP, NODE, POD
from gpuworkshop.lab.kubelet.devices import Devices, NoDevice, gpu_of
from gpuworkshop.lab.kubelet.loads import KINDS, LONGEST_S, SHORTEST_S, parse_load
from gpuworkshop.lab.simulation import SimulatedNode

GPU = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
PLUGIN = {"name": "plugin", "image": "nvcr.io/nvidia/k8s-device-plugin:v0.17.4"}


def _file(lab: KubeletLab) -> list[dict[str, Any]]:
    path = lab.state / "lab" / "nodes" / f"{NODE_NAME}.yaml"
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    gpus.parse(path.read_text(encoding="utf-8"), NODE_NAME)  # what the exporter would say to it
    return found


def _loads(lab: KubeletLab) -> dict[str, Any]:
    return {pod["pod"]: pod["load"] for gpu in _file(lab) for pod in gpu["pods"]}


def _offered(lab: KubeletLab) -> Any:
    return lab.registry.get(NODE, "", NODE_NAME)["status"]["allocatable"].get("nvidia.com/gpu")


def test_pod_with_a_limit_holds_a_gpu_until_it_ends() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("burn", pause(**GPU), annotations={"gpuworkshop.io/load": "{kind: wave, on: 5, off: 5}"})
        lab.pod("idle", pause(**GPU))
        lab.pod("none", pause())
        for name in ("burn", "idle", "none"):
            await lab.ready(name)
        assert _loads(lab) == {"burn": {"kind": "wave", "on": 5, "off": 5}, "idle": {"kind": "idle"}}
        assert [len(gpu["pods"]) for gpu in _file(lab)] == [1, 1, 0, 0]
        lab.registry.delete(POD, "default", "burn")
        await lab.gone("burn")
        assert set(_loads(lab)) == {"idle"}

    in_lab(test, gpus=True)


def test_load_can_change_while_the_pod_runs() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("burn", pause(**GPU))
        await lab.ready("burn")

        def annotate(pod: dict[str, Any]) -> None:
            pod["metadata"]["annotations"] = {"gpuworkshop.io/load": "training"}

        lab.registry.modify(POD, "default", "burn", annotate)
        lab.pod("later", pause())
        await lab.ready("later")
        assert _loads(lab) == {"burn": {"kind": "training"}}

    in_lab(test, gpus=True)


def test_wrong_load_is_told_and_stays_idle() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("burn", pause(**GPU), annotations={"gpuworkshop.io/load": "wavy"})
        await lab.ready("burn")
        assert "'wavy' is no load; write one of idle, matmul, wave" in lab.events("burn")["InvalidLoad"]
        assert _loads(lab) == {"burn": {"kind": "idle"}}

    in_lab(test, gpus=True)


def test_more_gpus_than_there_are_fail_the_pod_as_for_real() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("greedy", pause(resources={"limits": {"nvidia.com/gpu": "5"}}))
        pod = await lab.phase("greedy", "Failed")
        assert pod["status"]["reason"] == "UnexpectedAdmissionError"
        assert "Requested: 5, Available: 4, which is unexpected" in pod["status"]["message"]
        assert _loads(lab) == {}

    in_lab(test, gpus=True)


def test_device_plugin_makes_gpus_allocatable_and_its_end_takes_them_away() -> None:
    async def test(lab: KubeletLab) -> None:
        assert _offered(lab) is None
        lab.pod("plugin", PLUGIN)
        await lab.until(lambda: _offered(lab) == "4", NODE)
        lab.registry.delete(POD, "default", "plugin")
        await lab.until(lambda: _offered(lab) == "0", NODE)
        assert lab.registry.get(NODE, "", NODE_NAME)["status"]["capacity"]["nvidia.com/gpu"] == "4"

    in_lab(test, gpus=True)


def test_time_slicing_offers_each_gpu_several_times() -> None:
    async def test(lab: KubeletLab) -> None:
        config = {"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 3}]}}}
        lab.put(CONFIG_MAP, "slicing", data={"any": yaml.safe_dump({"version": "v1", **config})})
        lab.pod("plugin", PLUGIN, volumes=[{"name": "config", "configMap": {"name": "slicing"}}])
        await lab.until(lambda: _offered(lab) == "12", NODE)
        for number in range(5):
            lab.pod(f"burn-{number}", shell("echo $NVIDIA_VISIBLE_DEVICES; sleep 60", **GPU))
            await lab.ready(f"burn-{number}")
        assert [len(gpu["pods"]) for gpu in _file(lab)] == [2, 1, 1, 1]
        seen = {line.strip() for number in range(5) for line in [await lab.log(f"burn-{number}")]}
        assert seen <= {gpu["uuid"].encode() for gpu in _file(lab)} | {b""}

        def change(live: dict[str, Any]) -> None:
            live["data"] = {"any": "version: v1"}

        lab.registry.modify(CONFIG_MAP, "default", "slicing", change)
        await lab.until(lambda: _offered(lab) == "4", NODE)

    in_lab(test, gpus=True)


def test_same_pod_has_the_same_gpu_after_a_restart(tmp_path: Path) -> None:
    def devices() -> Devices:
        return Devices(SimulatedNode(tmp_path / "node.yaml"), "A10G", 3)

    first = devices()
    for name in ("one", "two", "three"):
        first.assign(f"uid-{name}", "default", name, {"main": 1}, {"kind": "idle"})
    first.free("uid-one")
    second = devices()
    second.keep_only(["uid-two", "uid-three"])
    for name in ("three", "two"):
        second.assign(f"uid-{name}", "default", name, {"main": 1}, {"kind": "matmul"})
        assert second.held_by(f"uid-{name}", "main") == first.held_by(f"uid-{name}", "main")
    second.keep_only(["uid-two"])
    assert second.held_by("uid-three", "main") == []


def test_damaged_checkpoint_is_started_anew(tmp_path: Path) -> None:
    (tmp_path / "node.devices.json").write_text("{", encoding="utf-8")
    devices = Devices(SimulatedNode(tmp_path / "node.yaml"), "A10G", 1)
    devices.assign("uid", "default", "pod", {"main": 1}, {"kind": "idle"})
    with pytest.raises(NoDevice):
        devices.assign("other", "default", "other", {"main": 1}, {"kind": "idle"})


def test_container_with_two_replicas_of_one_gpu_is_there_once(tmp_path: Path) -> None:
    devices = Devices(SimulatedNode(tmp_path / "node.yaml"), "A10G", 1)
    devices.replicas = 2
    devices.assign("uid", "default", "pod", {"main": 2}, {"kind": "idle"})
    held = devices.held_by("uid", "main")
    assert len(set(held)) == 2
    assert {gpu_of(device) for device in held} == set(devices.uuids)
    assert len(gpus.parse((tmp_path / "node.yaml").read_text(encoding="utf-8"), "node")[0].pods) == 1


@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("wave", {"kind": "wave"}),
        ("{kind: wave, on: 1.5, off: 20}", {"kind": "wave", "on": 1.5, "off": 20}),
        ("kind: memory-bound", {"kind": "memory-bound"}),
    ],
)
def test_loads_that_can_be_written(text: str, load: dict[str, Any]) -> None:
    assert parse_load(text) == load


@pytest.mark.parametrize(
    "text",
    [
        "",
        "on",
        "[1]",
        "{",
        "{kind: shared}",
        "{kind: matmul, on: 3}",
        "{kind: wave, on: true}",
        "{kind: wave, on: 0}",
        "{kind: wave, up: 1}",
        "42",
    ],
)
def test_loads_that_make_no_sense(text: str) -> None:
    with pytest.raises(ValueError, match=r"no load|not YAML|only a wave|no number of seconds"):
        parse_load(text)


def test_words_are_the_exporters() -> None:
    assert KINDS == exporter_loads.POD_KINDS
    assert (SHORTEST_S, LONGEST_S) == (exporter_loads.SHORTEST_S, exporter_loads.LONGEST_S)


def test_two_pods_at_once_never_get_the_same_gpu() -> None:
    async def test(lab: KubeletLab) -> None:
        for number in range(4):
            lab.pod(f"burn-{number}", pause(**GPU))
        await asyncio.gather(*(lab.ready(f"burn-{number}") for number in range(4)))
        assert [len(gpu["pods"]) for gpu in _file(lab)] == [1, 1, 1, 1]

    in_lab(test, gpus=True)
