"""Labels of pods on series: which, by what names, and never twice."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gpuworkshop.exporter.devices import Device, Instance, Pod
from gpuworkshop.exporter.pod_labels import chosen, free, valid_name
from gpuworkshop.exporter.rendering import block, labels
from gpuworkshop.exporter.schema import SCHEMAS

DEVICE = Device(0, "GPU-0", "NVIDIA H200", "00000000:01:00.0", "580", Instance("1g.18gb", 3))
NAMES = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("app", "app"),
        ("app.kubernetes.io/name", "app_kubernetes_io_name"),
        ("Team-A", "Team_A"),
        ("2nd", "_2nd"),
        ("größe", "gr__e"),
    ],
)
def test_names_that_prometheus_takes(name: str, valid: str) -> None:
    assert valid_name(name) == valid


@given(st.text(min_size=1))
def test_every_name_becomes_valid(name: str) -> None:
    assert NAMES.fullmatch(valid_name(name))


HAS = {"app": "burn", "app.kubernetes.io/name": "n", "team": "ml", "pod-template-hash": "77"}


@pytest.mark.parametrize(
    ("allowed", "shown"),
    [
        ((), {}),
        (("app",), {"app": "burn"}),
        (("team", "app"), {"app": "burn", "team": "ml"}),
        (("app*",), {"app": "burn", "app_kubernetes_io_name": "n"}),
        (("app.kubernetes.io/*",), {"app_kubernetes_io_name": "n"}),
        (("*hash",), {"pod_template_hash": "77"}),
        (("App", "tea"), {}),
        (("*",), {"app": "burn", "app_kubernetes_io_name": "n", "team": "ml", "pod_template_hash": "77"}),
    ],
)
def test_only_what_is_allowed_is_shown(allowed: tuple[str, ...], shown: dict[str, str]) -> None:
    assert dict(chosen(HAS, allowed)) == shown


def test_two_that_become_one_name() -> None:
    assert chosen({"a.b": "1", "a_b": "2", "a-b": "3"}, ["*"]) == (("a_b", "2"),)
    assert chosen({"a.b": "1", "a-b": "3"}, ["*"]) == (("a_b", "3"),)
    assert chosen({"a.b": "1", "a_b": "2"}, ["a.b"]) == (("a_b", "1"),)


def test_a_targets_own_labels_are_left_to_prometheus() -> None:
    assert chosen({"job": "x", "instance": "y", "app.kubernetes.io/instance": "z"}, ["*"]) == (
        ("app_kubernetes_io_instance", "z"),
    )


def test_a_label_whose_name_is_taken_is_left_out() -> None:
    assert free([("a", "1"), ("b", "2")], ["b"]) == [("a", "1")]


@pytest.mark.parametrize("schema", list(SCHEMAS))
def test_no_label_of_a_pod_takes_the_place_of_another(schema: str) -> None:
    plain = labels(DEVICE, Pod("ml", "a", "main", "2", "u-1"), SCHEMAS[schema], "node-1")
    taken = tuple((name, "mine") for name, _ in plain)
    pod = Pod("ml", "a", "main", "2", "u-1", (*taken, ("zone", 'quoted "x"\\\n é')))
    found = labels(DEVICE, pod, SCHEMAS[schema], "node-1")
    assert len(dict(found)) == len(found)
    assert dict(found) == {**dict(plain), "zone": 'quoted "x"\\\n é'}
    (family,) = text_string_to_metric_families(f"m{block(found)} 1\n")
    assert family.samples[0].labels == dict(found)


def test_the_order_is_dcgm_exporters() -> None:
    pod = Pod("ml", "a", "main", "2", "u-1", (("app", "x"), ("team", "y")))
    names = [name for name, _ in labels(DEVICE, pod, SCHEMAS["4.8.4"], "node-1")]
    assert names[-9:] == [
        "hostname", "DCGM_FI_DRIVER_VERSION", "app", "team", "container", "namespace", "pod", "pod_uid", "vgpu",  # noqa: E501
    ]  # fmt: skip
