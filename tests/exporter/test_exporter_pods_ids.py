"""Device ids, resource names and slots, read from answers of the kubelet's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from exporter_kubelet import GPU_RESOURCE, answer, holding
from hypothesis import given
from hypothesis import strategies as st

from gpuworkshop.exporter.device_ids import Place, place_of
from gpuworkshop.exporter.devices import Device, Instance, Pod, Reading
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.holders import Holders, Rules, no_migs
from gpuworkshop.exporter.rendering import Renderer
from gpuworkshop.exporter.sampler import Held, Snapshot
from gpuworkshop.exporter.schema import SCHEMAS

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent.parent / "data" / "exporter-pod-mapping.json").read_text(encoding="utf-8")
)["cases"]
UUID = "b8ea3855-276c-c9cb-b366-c6fa655957c5"
GPU = f"GPU-{UUID}"


def migs(uuid: str) -> tuple[str, int] | None:
    """What NVML says in the cases."""
    return (GPU, 3) if uuid == f"MIG-{UUID}" else None


def device(instance: int | None = None, uuid: str = GPU, index: int = 0) -> Device:
    part = Instance("1g.18gb", instance) if instance is not None else None
    return Device(index, uuid, "NVIDIA H200", "00000000:01:00.0", "580", part)


def of_case(case: dict[str, Any], *, sharing: bool) -> list[dict[str, str | None]]:
    """The pods of the case's device, as it writes them."""
    about = case["device"]
    pods = [
        holding(device_id, pod=f"gpu-pod-{number}", resource=about.get("resource", GPU_RESOURCE))
        for number, device_id in enumerate(case["device_ids"])
    ]
    rules = Rules(about.get("resource_names", ()), sharing, migs)
    # A case by index says nothing of the UUID, and one by UUID nothing of the index.
    asked = device(about.get("gi"), about.get("uuid", "GPU-other"), about.get("gpu", 7))
    return [{"pod": pod.pod, "vgpu": pod.vgpu or None} for pod in Holders(answer(*pods), rules).of(asked)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"case {case['n']}")
def test_the_table_of_cases(case: dict[str, Any]) -> None:
    expected = case["expected"] if isinstance(case["expected"], list) else [case["expected"]]
    wanted = [{"pod": each["pod"], "vgpu": each.get("vgpu")} for each in expected if each["pod"]]
    for sharing in [True, False] if case["mode"] == "any" else [case["mode"] == "sharing"]:
        assert of_case(case, sharing=sharing) == wanted


@pytest.mark.parametrize(
    ("device_id", "place"),
    [
        (GPU, Place(GPU)),
        (f"{GPU}::", Place(GPU)),
        (f"{GPU}::12", Place(GPU, None, "12")),
        (f"{GPU}/vgpu2", Place(GPU, None, "2")),
        (f"MIG-{UUID}", Place(GPU, 3)),
        (f"MIG-{UUID}::1", Place(GPU, 3, "1")),
        ("MIG-other", Place("GPU-other", None, sure=False)),
        (f"MIG-{GPU}/5/0", Place(GPU, 5)),
        (f"MIG-{GPU}/5/0::2", Place(GPU, 5, "2")),
        ("nvidia0", Place(0)),
        ("nvidia11/gi3", Place(11, 3)),
        ("nvidia0/vgpu1", Place(0, None, "1")),
        ("nvidia2/gi13/vgpu0", Place(2, 13, "0")),
        (UUID, Place(UUID)),
    ],
)
def test_every_form_of_an_id(device_id: str, place: Place) -> None:
    assert place_of(device_id, migs) == place


@given(st.text())
def test_no_id_is_too_odd(text: str) -> None:
    assert place_of(text, no_migs).gpu is not None


@given(st.sampled_from([GPU, f"MIG-{UUID}", f"MIG-{GPU}/5/0", "nvidia3", "nvidia3/gi1"]), st.integers(0, 999))
def test_a_slot_changes_nothing_else(device_id: str, slot: int) -> None:
    whole = place_of(device_id, migs)
    for form in (f"{device_id}::{slot}", f"{device_id}/vgpu{slot}"):
        assert place_of(form, migs) == Place(whole.gpu, whole.instance, str(slot))


@pytest.mark.parametrize(
    ("resource", "is_gpu"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-1g.18gb", True),
        ("nvidia.com/mig-1g.18gb.shared", True),
        ("example.com/listed", True),
        ("nvidia.com/a100", False),
        ("nvidia.com/gpus", False),
        ("cpu", False),
        ("vpc.amazonaws.com/efa", False),
    ],
)
def test_only_gpus_are_looked_at(resource: str, is_gpu: bool) -> None:
    pods = answer(holding(GPU, resource=resource))
    assert bool(Holders(pods, Rules(["example.com/listed"])).of(device())) is is_gpu


def test_an_instance_is_held_by_its_own_pods_and_the_gpu_by_all() -> None:
    pods = answer(
        holding(f"MIG-{UUID}", pod="by-driver"),
        holding(f"MIG-{GPU}/5/0", pod="old-form"),
        holding("nvidia0/gi3", pod="by-index"),
        holding("GPU-other", pod="elsewhere"),
    )
    holders = Holders(pods, Rules(migs=migs))
    named = {gi: [pod.pod for pod in holders.of(device(gi))] for gi in (3, 5, 7, None)}
    assert named[3] == ["by-driver", "by-index"]
    assert named[5] == ["old-form"]
    assert named[7] == []
    assert named[None] == ["by-driver", "by-index", "old-form"]
    assert holders.unsure == 0


def test_mig_devices_that_the_driver_does_not_know_are_counted() -> None:
    pods = answer(holding("MIG-1", f"MIG-{UUID}", "MIG-2::0"), holding(GPU))
    assert Holders(pods, Rules(migs=migs)).unsure == 2


def test_slots_of_one_container_are_one_row_unless_sharing_is_told() -> None:
    pods = answer(holding(*(f"{GPU}::{slot}" for slot in (10, 2))), holding(f"{GPU}::0", pod="b"))
    alone = Holders(pods, Rules()).of(device())
    assert alone == [Pod("default", "b", "default"), Pod("default", "gpu-pod", "default")]
    slots = [(pod.pod, pod.vgpu) for pod in Holders(pods, Rules(sharing=True)).of(device())]
    assert slots == [("b", "0"), ("gpu-pod", "2"), ("gpu-pod", "10")]


def test_containers_of_a_pod_are_told_apart_and_the_order_is_always_the_same() -> None:
    pods = [holding(GPU, pod=pod, container=name) for pod in ("b", "a") for name in ("side", "main")]
    pods.append(holding(GPU, pod="z", namespace="aa"))
    one, other = (Holders(answer(*each), Rules()).of(device()) for each in (pods, pods[::-1]))
    assert one == other
    assert [(pod.namespace, pod.pod, pod.container) for pod in one] == [
        ("aa", "z", "default"),
        ("default", "a", "main"),
        ("default", "a", "side"),
        ("default", "b", "main"),
        ("default", "b", "side"),
    ]


def row(pod: Pod) -> str:
    held = Held(Reading(device(), {Field.POWER: 80.5}), [pod])
    text = Renderer(SCHEMAS["4.8.4"], "node-1").render(Snapshot(1.5, 0.0, 0.25, [held], [])).decode()
    (line,) = (line for line in text.splitlines() if line.startswith("DCGM_FI_DEV_POWER_USAGE{"))
    return line.partition("DCGM_FI_DRIVER_VERSION=")[2]


def test_slot_and_uid_are_labels_only_where_they_are_known() -> None:
    plain = '"580",container="main",namespace="ml",pod="a"'
    assert row(Pod("ml", "a", "main")) == plain + "} 80.500000"
    assert row(Pod("ml", "a", "main", "2")) == plain + ',vgpu="2"} 80.500000'
    assert row(Pod("ml", "a", "main", "2", "1-2")) == plain + ',pod_uid="1-2",vgpu="2"} 80.500000'
