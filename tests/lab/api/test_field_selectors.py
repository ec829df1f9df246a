"""Field selectors: by which fields each kind can be selected."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuworkshop.lab.api import kinds
from gpuworkshop.lab.api.field_labels import SUPPORTED
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.selectors import field_selector

POD: Object = {
    "metadata": {"name": "web-1", "namespace": "team"},
    "spec": {"nodeName": "n1", "hostNetwork": True},
    "status": {"phase": "Running"},
}
EVENT: Object = {
    "metadata": {"name": "web-1.17", "namespace": "team"},
    "involvedObject": {"kind": "Pod", "name": "web-1", "uid": "u1"},
    "type": "Warning",
    "reason": "BackOff",
    "source": {"component": "kubelet"},
}


@pytest.mark.parametrize(
    ("text", "selects"),
    [
        ("", True),
        ("metadata.name=web-1", True),
        ("metadata.name==web-2", False),
        ("metadata.name!=web-2", True),
        ("metadata.name=web-1,metadata.namespace=other", False),
        ("spec.nodeName=n1,status.phase!=Pending", True),
        ("spec.host=n1", True),
        ("spec.nodeName=", False),
        ("status.nominatedNodeName=", True),
        ("spec.hostNetwork=true", True),
        ("spec.hostNetwork!=true", False),
    ],
)
def test_pods(text: str, selects: bool) -> None:
    assert field_selector(kinds.POD, text)(POD) is selects


def test_a_pod_that_waits_has_no_node() -> None:
    waiting: Object = {"metadata": {"name": "x"}, "spec": {}}
    assert field_selector(kinds.POD, "spec.nodeName=")(waiting)
    assert field_selector(kinds.POD, "spec.nodeName!=n1,spec.hostNetwork=false")(waiting)


@pytest.mark.parametrize(
    "text",
    [
        "involvedObject.name=web-1,involvedObject.kind=Pod,involvedObject.uid=u1",
        "type!=Normal",
        "reason=BackOff,source=kubelet",
        "involvedObject.fieldPath=",
    ],
)
def test_events(text: str) -> None:
    assert field_selector(kinds.EVENT, text)(EVENT)


def test_other_kinds() -> None:
    node: Object = {"metadata": {"name": "n"}, "spec": {"unschedulable": True}}
    assert field_selector(kinds.NODE, "spec.unschedulable=true")(node)
    assert field_selector(kinds.NODE, "spec.unschedulable=false")({"metadata": {"name": "n"}})
    assert field_selector(kinds.SECRET, "type=Opaque")({"metadata": {}, "type": "Opaque"})
    assert field_selector(kinds.NAMESPACE, "status.phase=Active")({"status": {"phase": "Active"}})
    assert field_selector(kinds.JOB, "status.successful=2")({"status": {"succeeded": 2}})
    assert field_selector(kinds.JOB, "status.successful=0")({})
    assert not field_selector(kinds.SERVICE, "spec.type=NodePort")({"spec": {"type": "ClusterIP"}})


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (kinds.POD, "spec.color=red", "field label not supported: spec.color"),
        (kinds.NODE, "metadata.namespace=x", "field label not supported: metadata.namespace"),
        (
            kinds.CONFIG_MAP,
            "data=x",
            '"data" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        (kinds.POD, "web-1", "invalid selector: 'web-1'; can't understand 'web-1'"),
        (kinds.POD, "metadata.name=a=b", "invalid field selector: unescaped character in value: 'a=b'"),
    ],
)
def test_what_is_refused(kind: Kind, text: str, words: str) -> None:
    with pytest.raises(ApiError) as caught:
        field_selector(kind, text)
    assert (caught.value.code, caught.value.message) == (400, words)


@pytest.mark.parametrize("kind", kinds.BUILT_IN, ids=lambda kind: kind.kind)
def test_every_kind_has_its_name(kind: Kind) -> None:
    selects = field_selector(kind, "metadata.name=x")
    assert selects({"metadata": {"name": "x"}})
    assert not selects({"metadata": {"name": "y"}})


def test_no_supported_field_is_misspelt() -> None:
    known = {kind.resource for kind in kinds.BUILT_IN}
    assert set(SUPPORTED) <= known


@given(st.text(max_size=12))
def test_values_are_escaped(value: str) -> None:
    escaped = "".join(f"\\{char}" if char in "\\,=" else char for char in value)
    assert field_selector(kinds.POD, f"metadata.name={escaped}")({"metadata": {"name": value}})


@given(st.text(alphabet="a.=!\\,", max_size=10))
def test_any_text_is_read_or_refused_by_field(text: str) -> None:
    with suppress(ApiError):
        assert field_selector(kinds.POD, text)(POD) in (True, False)
