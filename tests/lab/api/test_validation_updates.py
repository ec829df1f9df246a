from __future__ import annotations

from typing import Any

import pytest
from defaulted_samples import defaulted, load, named, of_cluster, pod, said_of_change

from gpuworkshop.lab.api import kinds
from gpuworkshop.lab.api.kinds import POD, Kind
from gpuworkshop.lab.api.objects import Object, copy_of

ONLY = (
    "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
    "existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
    "negative)"
)
BOUND: dict[str, Any] = {
    "nodeName": "node-1",
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
}


def changed(**spec: Any) -> list[str]:
    """What is said to a change of a pod that is bound to a node."""
    return said_of_change(POD, pod(**{**BOUND, **spec}), pod(**BOUND))


def test_what_of_a_pod_may_change() -> None:
    new = pod(**BOUND, activeDeadlineSeconds=5, terminationGracePeriodSeconds=1)
    new["metadata"]["labels"] = {"a": "b"}
    new["spec"]["containers"][0]["image"] = "nginx:2"
    new["spec"]["tolerations"] = [
        {**BOUND["tolerations"][0], "tolerationSeconds": 9},
        {"key": "more", "operator": "Exists"},
    ]
    assert said_of_change(POD, new, pod(**BOUND)) == []


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"restartPolicy": "Never"}, "restartPolicy"),
        ({"nodeName": "node-2"}, "nodeName"),
        ({"nodeName": None}, "nodeName"),
        ({"containers": [{"name": "c", "image": "nginx:1.27", "env": [{"name": "A"}]}]}, "containers[0].env"),
        ({"containers": [{"name": "d", "image": "nginx:1.27"}]}, "containers[0].name"),
    ],
)
def test_what_may_not(spec: Object, path: str) -> None:
    assert changed(**spec) == [f"{ONLY}\n  changed: spec.{path}"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": []}, "spec.containers: Forbidden: pod updates may not add or remove containers"),
        (
            {"initContainers": [{"name": "i", "image": "a:1"}]},
            "spec.initContainers: Forbidden: pod updates may not add or remove init containers",
        ),
        ({"containers": [{"name": "c", "image": ""}]}, "spec.containers[0].image: Required value"),
        (
            {"tolerations": []},
            "spec.tolerations: Forbidden: existing toleration can not be modified except its "
            "tolerationSeconds",
        ),
        (
            {"activeDeadlineSeconds": 0},
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
    ],
)
def test_what_is_said_of_the_rest(spec: Object, expected: str) -> None:
    said = [line for line in changed(**spec) if not line.startswith("spec: Forbidden")]
    assert said == [expected]


def test_a_deadline_only_comes_closer() -> None:
    old = pod(activeDeadlineSeconds=10)
    field = "spec.activeDeadlineSeconds: Invalid value"
    assert said_of_change(POD, pod(activeDeadlineSeconds=5), old) == []
    assert said_of_change(POD, pod(activeDeadlineSeconds=11), old) == [
        f"{field}: 11: must be less than or equal to previous value"
    ]
    assert said_of_change(POD, pod(), old) == [
        f'{field}: "null": must not update from a positive integer to nil value'
    ]


def test_a_pod_is_bound_once() -> None:
    assert said_of_change(POD, pod(nodeName="node-1"), pod()) == []


def test_what_holds_a_pod_back_can_be_taken_away() -> None:
    held = pod(schedulingGates=[{"name": "example.org/wait"}])
    assert said_of_change(POD, pod(nodeSelector={"a": "b"}), held) == []


SERVICE = "{spec: {clusterIP: 10.100.0.7, ports: [{port: 80}]}}"
DEFINITION = """
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Trainer, plural: trainers}
  versions: [{name: v1, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
CASES: list[tuple[Kind, Object, str, str]] = [
    (
        kinds.SERVICE,
        named(**load(SERVICE)),
        "{spec: {clusterIP: 10.100.0.8, clusterIPs: [10.100.0.8]}}",
        'spec.clusterIPs[0]: Invalid value: ["10.100.0.8"]: may not change once set',
    ),
    (
        kinds.SERVICE,
        named(**load(SERVICE)),
        "{spec: {clusterIP: null, clusterIPs: []}}",
        "spec.clusterIPs[0]: Invalid value: []: may not change once set",
    ),
    (
        kinds.SERVICE,
        named(**load(SERVICE)),
        "{spec: {type: ExternalName, externalName: a.b, clusterIP: ''}}",
        "",
    ),
    (
        kinds.ENDPOINT_SLICE,
        named(addressType="IPv4"),
        "{addressType: IPv6}",
        'addressType: Invalid value: "IPv6": field is immutable',
    ),
    (kinds.CONFIG_MAP, named(data={"a": "1"}), "{data: {a: '2'}}", ""),
    (
        kinds.CONFIG_MAP,
        named(data={"a": "1"}, immutable=True),
        "{data: {a: '2'}}",
        "data: Forbidden: field is immutable when `immutable` is set",
    ),
    (
        kinds.CONFIG_MAP,
        named(immutable=True),
        "{immutable: false}",
        "immutable: Forbidden: field is immutable when `immutable` is set",
    ),
    (kinds.CONFIG_MAP, named(data={"a": "1"}, immutable=True), "{metadata: {labels: {a: b}}}", ""),
    (
        kinds.SECRET,
        named(immutable=True),
        "{stringData: {a: b}}",
        "data: Forbidden: field is immutable when `immutable` is set",
    ),
    (
        kinds.SECRET,
        named(),
        "{type: example.org/own}",
        'type: Invalid value: "example.org/own": field is immutable',
    ),
    (
        kinds.ROLE_BINDING,
        named(roleRef={"kind": "Role", "name": "a"}),
        "{subjects: [{kind: User, name: ann}]}",
        "",
    ),
    (
        kinds.ROLE_BINDING,
        named(roleRef={"kind": "Role", "name": "a"}),
        "{roleRef: {name: b}}",
        "roleRef: Invalid value: {",
    ),
    (
        kinds.PRIORITY_CLASS,
        of_cluster("p", value=1),
        "{value: 2}",
        "value: Forbidden: may not be changed in an update.",
    ),
    (kinds.PRIORITY_CLASS, of_cluster("p", value=1), "{description: a}", ""),
    (
        kinds.PRIORITY_CLASS,
        of_cluster("p", value=1),
        "{preemptionPolicy: Never}",
        'preemptionPolicy: Invalid value: "Never": field is immutable',
    ),
    (
        kinds.RUNTIME_CLASS,
        of_cluster("r", handler="a"),
        "{handler: b}",
        'handler: Invalid value: "b": field is immutable',
    ),
    (kinds.CONTROLLER_REVISION, named(revision=1, data={"a": 1}), "{revision: 2}", ""),
    (
        kinds.CONTROLLER_REVISION,
        named(revision=1, data={"a": 1}),
        "{data: {a: 2}}",
        'data: Invalid value: {"a":2}: field is immutable',
    ),
    (
        kinds.CRD,
        of_cluster("trainers.example.org", **load(DEFINITION)),
        "{spec: {scope: Cluster}}",
        'spec.scope: Invalid value: "Cluster": field is immutable',
    ),
    (
        kinds.CRD,
        of_cluster("trainers.example.org", **load(DEFINITION)),
        "{spec: {names: {kind: T}}}",
        'spec.names.kind: Invalid value: "T": field is immutable',
    ),
]


def merged(base: Object, change: Object) -> Object:
    """`base` with the fields of `change`."""
    new = copy_of(base)
    for key, value in change.items():
        inner = new.get(key)
        new[key] = merged(inner, value) if isinstance(value, dict) and isinstance(inner, dict) else value
    return new


@pytest.mark.parametrize(
    ("kind", "old", "change", "expected"), CASES, ids=[f"{i}-{c[0].kind}" for i, c in enumerate(CASES)]
)
def test_what_stays(kind: Kind, old: Object, change: str, expected: str) -> None:
    old = defaulted(kind, old)
    said = said_of_change(kind, merged(old, load(change)), old)
    assert len(said) == (1 if expected else 0)
    assert "".join(said).startswith(expected)


def test_an_update_is_checked_as_a_creation_is() -> None:
    said = said_of_change(kinds.CONFIG_MAP, named(data={"a b": "c"}), named())
    assert said[0].startswith('data[a b]: Invalid value: "a b"')
