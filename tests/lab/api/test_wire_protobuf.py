"""Protobuf bodies: those of the real kubectl, made-up ones there and back, and broken ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_samples import Sent, objects, sent, without_nulls

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.wire import protobuf

CAPTURED = sent()
NAMESPACE: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}


def again(obj: Object) -> Object:
    return protobuf.decode(protobuf.encode(obj))


@pytest.mark.parametrize("captured", CAPTURED, ids=lambda captured: captured.command)
def test_what_kubectl_sends_is_what_kubectl_shows(captured: Sent) -> None:
    found = protobuf.decode(captured.body)
    if captured.shown is not None:
        assert found == without_nulls(captured.shown)
    assert again(found) == found


def test_token_request_of_kubectl() -> None:
    (captured,) = (each for each in CAPTURED if each.command.startswith("create token"))
    assert protobuf.decode(captured.body)["spec"] == {
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-1"},
        "expirationSeconds": 600,
    }


@settings(max_examples=150, deadline=None)
@given(objects())
def test_there_and_back(made: tuple[object, Object]) -> None:
    _, obj = made
    assert again(obj) == obj


def test_zeros_that_mean_something_stay() -> None:
    obj = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {
            "replicas": 0,
            "minReadySeconds": 0,
            "paused": False,
            "template": {"spec": {"hostPID": False}},
        },
    }
    assert again(obj)["spec"] == {"replicas": 0, "template": {"spec": {}}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": False}
    assert again(account) == account
    toleration = {"key": "a", "tolerationSeconds": 0, "value": ""}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "spec": {"tolerations": [toleration], "enableServiceLinks": False},
    }
    assert again(pod)["spec"] == {
        "tolerations": [{"key": "a", "tolerationSeconds": 0}],
        "enableServiceLinks": False,
    }


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2026-12-01T04:00:00Z", "2026-12-01T04:00:00.000000Z"),
        ("2026-12-01T05:00:00.25+01:00", "2026-12-01T04:00:00.250000Z"),
        ("1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59.500000Z"),
    ],
)
def test_times(written: str, read: str) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": {"renewTime": written}}
    assert again(lease)["spec"] == {"renewTime": read}


def test_maps_are_in_order() -> None:
    data = dict.fromkeys(["zebra", "apple", "mango"], "")
    found = again({"apiVersion": "v1", "kind": "ConfigMap", "data": data})["data"]
    assert list(found) == ["apple", "mango", "zebra"]


def test_extra_of_a_user_is_a_list() -> None:
    spec = {"user": "ann", "extra": {"team": ["vision", "speech"]}}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    assert again(review)["spec"] == spec


@pytest.mark.parametrize("version", ["v1", "apps/v1", "meta.k8s.io/v1"])
def test_delete_options_of_any_version(version: str) -> None:
    options = {
        "apiVersion": version,
        "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Foreground",
        "dryRun": ["All"],
    }
    assert again(options) == options


def test_eviction() -> None:
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "n"}}
    assert again(eviction) == eviction


def test_unknown_fields_are_ignored() -> None:
    body = protobuf.encode(NAMESPACE)
    # Field 99 of the envelope, a text; and a zero where its contentEncoding stands.
    assert protobuf.decode(body + b"\x9a\x06\x02hi" + b"\x1a\x00") == NAMESPACE


def text(number: int, value: bytes) -> bytes:
    """A field of protobuf that holds a short text or message."""
    return bytes([number << 3 | 2, len(value)]) + value


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("v1", "Widget"), ("v2", "Pod"), ("apps/v1", "Pod"), ("", ""), ("v1", "PodList")],
)
def test_unknown_kinds(api_version: str, kind: str) -> None:
    type_meta = text(1, api_version.encode()) + text(2, kind.encode())
    says = f'no kind "{kind}" is registered for version "{api_version}"'
    with pytest.raises(ApiError, match=says) as caught:
        protobuf.decode(protobuf.MAGIC + text(1, type_meta))
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


def read(body: bytes) -> Object | ApiError:
    """What the body holds, or how it is refused."""
    try:
        return protobuf.decode(body)
    except ApiError as error:
        return error


@pytest.mark.parametrize("captured", CAPTURED[:6], ids=lambda captured: captured.command)
def test_a_body_that_stops_half_way(captured: Sent) -> None:
    whole = protobuf.decode(captured.body)
    found = [read(captured.body[:end]) for end in range(len(captured.body))]
    assert {each.code for each in found if isinstance(each, ApiError)} == {400}
    # Between two fields of the envelope it is whole again: after the type, and after the content.
    complete = [each for each in found if not isinstance(each, ApiError)]
    head = {name: whole[name] for name in ("apiVersion", "kind")}
    assert all(each in (head, whole) for each in complete)
    assert len(complete) <= 3


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(CAPTURED), st.data())
def test_changed_bytes_never_break_the_server(captured: Sent, data: st.DataObject) -> None:
    body = bytearray(captured.body)
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    found = read(bytes(body))
    assert found.code == 400 if isinstance(found, ApiError) else {"apiVersion", "kind"} <= found.keys()


@pytest.mark.parametrize("body", [b"", b"k8s", b"{}", b"\x00" * 10, b'k8t\x00{"a":1}'])
def test_what_is_no_protobuf(body: bytes) -> None:
    with pytest.raises(ApiError, match="does not appear to be a protobuf message"):
        protobuf.decode(body)


@pytest.mark.parametrize(
    "metadata", [{"name": "abc"}, {"finalizers": ["abc"]}, {"labels": {"abc": "a"}}, {"labels": {"a": "abc"}}]
)
def test_text_that_is_no_utf8(metadata: dict[str, Any]) -> None:
    body = protobuf.encode({**NAMESPACE, "metadata": metadata})
    with pytest.raises(ApiError, match="malformed"):
        protobuf.decode(body.replace(b"abc", b"\xff\xfe\xfd"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"metadata": {"labels": {"a": 1}}},
        {"metadata": {"generation": "1"}},
        {"metadata": {"generation": 2**63}},
        {"metadata": {"creationTimestamp": "yesterday"}},
        {"metadata": "x"},
        {"spec": {"finalizers": [1]}},
    ],
)
def test_objects_that_do_not_go_into_protobuf(wrong: dict[str, Any]) -> None:
    with pytest.raises(ApiError, match="does not go into protobuf"):
        protobuf.encode({**NAMESPACE, **wrong})
