"""Bodies that are wrong somewhere: a sound object of each kind, and odd values at odd places in it."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from gpuworkshop.lab.api import kinds
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.wire import schema
from gpuworkshop.lab.api.wire.schema import Field, fields_of

Body = dict[str, Any]
DEEPEST = 9


def deep(levels: int) -> Any:
    """A value that is nested so deep."""
    found: Any = 7
    for level in range(levels):
        found = [found] if level % 2 else {"a": found}
    return found


TEXTS = """
    a - 1 -1 07 1e9 1Gi 0.1 10% 200% * / = a=b a,b $(X) ../.. A_b None null true AAAA v1 metadata.name
    .spec[0].x Always Never OnFailure In Exists Gt Equal RollingUpdate Recreate Indexed Ignore Container
    ClusterIP ExternalName TCP Pod Secret Node Role ClusterRole User default kube-system nvidia.com/gpu
    system-node-critical 127.0.0.1 10.100.0.9 fe80::1 300.1.1.1 2026-01-01T00:00:00Z foregroundDeletion
    9999-12-31T23:59:59+14:00 0001-01-01T00:00:00Z kubernetes.io/service-account-token orphan
    batch.kubernetes.io/job-tracking
""".split()  # noqa: SIM905  more readable so
TEXTS += ["", " ", "A b", "x" * 300, "\u0000", "\U0001f980 \u00e9 \u202e"]
NUMBERS = [0, 1, -1, 7, 64, 255, 65_536, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 2**64, 10**40]
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(NUMBERS),
    st.sampled_from([0.5, -0.0, 1e300, 5e-324]),
    st.sampled_from(TEXTS),
    st.sampled_from([[], {}, [None], [[]], [{}], {"a": None}, {"": ""}, {"a": {"b": [1, None]}}, [1, "a"]]),
    st.sampled_from([deep(40), deep(90)]),
).map(copy.deepcopy)
FITTING = {
    "string": st.sampled_from(TEXTS),
    "bool": st.booleans(),
    "int32": st.sampled_from([number for number in NUMBERS if abs(number) < 2**31]),
    "int64": st.sampled_from([number for number in NUMBERS if -(2**63) <= number < 2**63]),
    "bytes": st.sampled_from(["", "AAAA", "/w=="]),
    schema.QUANTITY: st.sampled_from(["0", "1", "-1", "1Gi", "0.1", "1e30", "100m", "9Ei", 5]),
    schema.INT_OR_STRING: st.sampled_from([0, 1, -1, 2**31 - 1, "10%", "200%", "http", "", "%", "-5%"]),
    schema.TIME: st.sampled_from(
        ["2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00+14:00"]
    ),
    schema.MICRO_TIME: st.sampled_from(["2026-01-01T00:00:00.000000Z"]),
    schema.FIELDS_V1: st.sampled_from([{}, {"f:spec": {}}, {"f:metadata": {"f:labels": {"f:a": {}}}}]),
    schema.RAW_EXTENSION: st.sampled_from([{}, {"a": 1}]),
}


@st.composite
def wrong_values(draw: st.DrawFn, field: Field, depth: int) -> Any:
    """A value for a field: of any type, or of the right one and odd further down."""
    if draw(st.integers(0, 3)) == 0 or depth > DEEPEST:
        return draw(ODD)
    if field.message:
        inner = draw(wrong_messages(field.message, depth + 1))
    else:
        inner = draw(FITTING.get(field.type, ODD))
    if field.repeated:
        return draw(st.sampled_from([[inner], [inner, copy.deepcopy(inner)], [], [inner, None]]))
    return {draw(st.sampled_from(TEXTS)): inner} if field.map else inner


@st.composite
def wrong_messages(draw: st.DrawFn, message: str, depth: int) -> Any:
    """A message with a few of its fields, or with what is not one."""
    fields = fields_of(message)
    names = draw(st.lists(st.sampled_from(sorted(fields) or ["a"]), max_size=4, unique=True))
    required = [name for name, field in fields.items() if field.required]
    if bool(required) and draw(st.booleans()):
        names = list(dict.fromkeys([*required, *names]))
    return {name: draw(wrong_values(fields[name], depth)) if name in fields else draw(ODD) for name in names}


@st.composite
def wrong_bodies(draw: st.DrawFn, kind: Kind) -> Body:
    """A sound object of the kind, with some wrong things put into it."""
    body = copy.deepcopy(sound(kind))
    for _ in range(draw(st.integers(1, 3))):
        spoil(draw, body, kind.message)
    return body


def spoil(draw: st.DrawFn, at: Body, message: str) -> None:
    """Put a wrong value at a field of the message, or somewhere in what is there."""
    fields = fields_of(message) if message else {}
    inner = [key for key, value in at.items() if isinstance(value, dict)]
    if bool(inner) and draw(st.integers(0, 2)):
        key = draw(st.sampled_from(sorted(inner)))
        field = fields.get(key)
        spoil(draw, at[key], field.message if field and not field.map else "")
        return
    key = draw(st.sampled_from(sorted({*fields, *at, "a"})))
    field = fields.get(key)
    at[key] = draw(ODD) if field is None else draw(wrong_values(field, 0))


CONTAINERS = [{"name": "main", "image": "nginx", "resources": {"limits": {"cpu": "1"}}}]
TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": CONTAINERS}}
WORKLOAD = {"selector": {"matchLabels": {"app": "x"}}, "template": TEMPLATE, "replicas": 1}
BINDING = {
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
    "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}],
}
STORAGE = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "group": "fuzz.example.com",
    "scope": "Namespaced",
    "names": {"plural": "others", "singular": "other", "kind": "Other", "listKind": "OtherList"},
    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
}
ASKED = {"verb": "get", "resource": "pods", "namespace": "default"}
SOUND: dict[Kind, Body] = {
    kinds.POD: {"spec": {"containers": CONTAINERS}},
    kinds.SERVICE: {"spec": {"ports": [{"port": 80}], "selector": {"app": "x"}}},
    kinds.CONFIG_MAP: {"data": {"a": "b"}},
    kinds.SECRET: {"stringData": {"a": "b"}},
    kinds.RESOURCE_QUOTA: {"spec": {"hard": {"pods": "5"}}},
    kinds.LIMIT_RANGE: {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}},
    kinds.PERSISTENT_VOLUME_CLAIM: {"spec": STORAGE},
    kinds.PERSISTENT_VOLUME: {
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    },
    kinds.DEPLOYMENT: {"spec": WORKLOAD},
    kinds.REPLICA_SET: {"spec": WORKLOAD},
    kinds.DAEMON_SET: {"spec": {key: WORKLOAD[key] for key in ("selector", "template")}},
    kinds.STATEFUL_SET: {"spec": WORKLOAD},
    kinds.CONTROLLER_REVISION: {"revision": 1, "data": {}},
    kinds.JOB: {"spec": {"template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}}},
    kinds.ENDPOINT_SLICE: {"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
    kinds.INGRESS: {"spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}}},
    kinds.NETWORK_POLICY: {"spec": {"podSelector": {}}},
    kinds.POD_DISRUPTION_BUDGET: {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}},
    kinds.PRIORITY_CLASS: {"value": 7},
    kinds.RUNTIME_CLASS: {"handler": "nvidia"},
    kinds.EVENT: {"involvedObject": {"namespace": "default", "kind": "Pod", "name": "x"}, "reason": "R"},
    kinds.ROLE: {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    kinds.CLUSTER_ROLE: {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    kinds.ROLE_BINDING: BINDING,
    kinds.CLUSTER_ROLE_BINDING: BINDING,
    kinds.CRD: {"spec": DEFINITION},
    kinds.SELF_SUBJECT_ACCESS_REVIEW: {"spec": {"resourceAttributes": ASKED}},
    kinds.SUBJECT_ACCESS_REVIEW: {"spec": {"resourceAttributes": ASKED, "user": "ann"}},
    kinds.LOCAL_SUBJECT_ACCESS_REVIEW: {"spec": {"resourceAttributes": ASKED, "user": "ann"}},
    kinds.SELF_SUBJECT_RULES_REVIEW: {"spec": {"namespace": "default"}},
    kinds.TOKEN_REVIEW: {"spec": {"token": "x"}},
}


def sound(kind: Kind) -> Body:
    """An object of the kind that any API server takes."""
    name = "others.fuzz.example.com" if kind is kinds.CRD else "fuzz"
    head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
    return {**head, **copy.deepcopy(SOUND.get(kind, {}))}
