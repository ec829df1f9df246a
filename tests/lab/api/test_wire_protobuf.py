"""Protobuf bodies: those of the real kubectl, made-up ones there and back, and broken ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.wire import protobuf
from wire_samples import Sent, objects, sent, without_nulls

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
        "spec": {"replicas": 0, "minReadySeconds": 0, "paused": False, "template": {"spec": {"hostPID": False}}},
    }
    assert again(obj)["spec"] == {"replicas": 0, "template": {"spec": {}}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": False}
    assert again(account) == account
    toleration = {"key": "a", "tolerationSeconds": 0, "value": ""}
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"tolerations": [toleration], "enableServiceLinks": False}}
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
    data = {name: "" for name in "zebra apple mango".split()}
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


@pytest.mark.parametrize(
    ("api_version", "kind"), [("v1", "Widget"), ("v2", "Pod"), ("apps/v1", "Pod"), ("", ""), ("v1", "PodList")]
)
def test_unknown_kinds(api_version: str, kind: str) -> None:
    head = [b"\x0a" + bytes([len(api_version)]) + api_version.encode(), b"\x12" + bytes([len(kind)]) + kind.encode()]
    type_meta = b"".join(head)
    with pytest.raises(ApiError, match=f'no kind "{kind}" is registered for version "{api_version}"') as caught:
        protobuf.decode(protobuf.MAGIC + b"\x0a" + bytes([len(type_meta)]) + type_meta)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")


@pytest.mark.parametrize("captured", CAPTURED[:6], ids=lambda captured: captured.command)
def test_a_body_that_stops_half_way(captured: Sent) -> None:
    whole = protobuf.decode(captured.body)
    refused = 0
    for end in range(len(captured.body)):
        try:
            assert protobuf.decode(captured.body[:end]) in (whole, {k: whole[k] for k in ("apiVersion", "kind")})
        except ApiError as error:
            assert error.code == 400
            refused += 1
    assert refused > len(captured.body) * 0.9


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(CAPTURED), st.data())
def test_changed_bytes_never_break_the_server(captured: Sent, data: st.DataObject) -> None:
    body = bytearray(captured.body)
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = protobuf.decode(bytes(body))
    except ApiError as error:
        assert error.code == 400
    else:
        assert {"apiVersion", "kind"} <= found.keys()


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
