from __future__ import annotations

from typing import Any

import pytest
from defaulted_samples import load, named, of_cluster, said_of, said_of_change

from gpuworkshop.lab.api import kinds
from gpuworkshop.lab.api.kinds import CONFIG_MAP, Kind

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
THING = Kind("example.org", "v1", "Thing", "things")
PORTS = {"ports": [{"port": 80}]}


def of_meta(**fields: Any) -> list[str]:
    """What is said to a ConfigMap with this metadata."""
    obj = named()
    obj["metadata"].update(fields)
    return said_of(CONFIG_MAP, obj)


def test_the_words_for_a_bad_name() -> None:
    assert said_of(CONFIG_MAP, named("Foo_Bar")) == [f'metadata.name: Invalid value: "Foo_Bar": {SUBDOMAIN}']
    assert of_meta(name="") == ["metadata.name: Required value: name or generateName is required"]


@pytest.mark.parametrize(
    ("kind", "name", "is_fine"),
    [
        (CONFIG_MAP, "a.b-c.1", True),
        (CONFIG_MAP, "a" * 253, True),
        (CONFIG_MAP, "a" * 254, False),
        (CONFIG_MAP, "-a", False),
        (CONFIG_MAP, "a..b", False),
        (CONFIG_MAP, "a/b", False),
        (CONFIG_MAP, "a\n", False),
        (kinds.SERVICE_ACCOUNT, "Robot", False),
        (kinds.SERVICE, "web", True),
        (kinds.SERVICE, "1web", False),
        (kinds.SERVICE, "a.b", False),
        (kinds.SERVICE, "a" * 64, False),
        (kinds.ROLE, "system:node", True),
        (kinds.ROLE, "Any Name", True),
        (kinds.ROLE, "a/b", False),
        (kinds.ROLE, "a%b", False),
        (kinds.ROLE, "..", False),
        (THING, "a.b", True),
        (THING, "A", False),
    ],
)
def test_names_by_the_rule_of_each_kind(kind: Kind, name: str, is_fine: bool) -> None:
    said = said_of(kind, named(name, spec=PORTS))
    assert [line.partition(":")[0] for line in said] == ([] if is_fine else ["metadata.name"])


def test_namespaces_have_names_that_are_labels() -> None:
    assert said_of(kinds.NAMESPACE, of_cluster("team-1")) == []
    (said, label) = said_of(kinds.NAMESPACE, of_cluster("a.b-"))[:2]
    assert 'metadata.name: Invalid value: "a.b-": a lowercase RFC 1123 label must consist of' in said
    assert label.startswith('metadata.labels: Invalid value: "a.b-"')  # the label with its name


def test_the_namespace_of_an_object() -> None:
    assert of_meta(namespace="") == ["metadata.namespace: Required value"]
    assert of_meta(namespace="A")[0].startswith(
        'metadata.namespace: Invalid value: "A": a lowercase RFC 1123 label'
    )
    assert said_of(kinds.NAMESPACE, named("x")) == ["metadata.namespace: Forbidden: not allowed on this type"]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"app.kubernetes.io/name": "x", "a": "", "A_b.c-1": "V_1.2-x"}, ""),
        (
            {"-a": "x"},
            'metadata.labels: Invalid value: "-a": name part must consist of alphanumeric characters',
        ),
        ({"a/b/c": "x"}, 'metadata.labels: Invalid value: "a/b/c": a qualified name must consist of'),
        (
            {"A.org/b": "x"},
            'metadata.labels: Invalid value: "A.org/b": prefix part a lowercase RFC 1123 subdomain',
        ),
        (
            {"a": "b c"},
            'metadata.labels: Invalid value: "b c": a valid label must be an empty string or consist of',
        ),
        ({"a": "b" * 64}, "must be no more than 63 bytes"),
    ],
)
def test_labels(labels: dict[str, str], expected: str) -> None:
    said = of_meta(labels=labels)
    assert len(said) == (1 if expected else 0)
    assert expected in "".join(said)


def test_annotations() -> None:
    assert of_meta(annotations={"Example.org/Note": "any text\n", "a": "b" * 1000}) == []
    assert of_meta(annotations={"a b": ""})[0].startswith(
        'metadata.annotations: Invalid value: "a b": name part'
    )
    assert of_meta(annotations={"a": "é" * 131_071, "b": ""}) == []
    too_long = "metadata.annotations: Too long: may not be more than 262144 bytes"
    assert of_meta(annotations={"a": "é" * 131_072, "b": ""}) == [too_long]


def test_owners() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "1", "controller": True}
    assert of_meta(ownerReferences=[owner, {**owner, "controller": False}]) == []
    (said,) = of_meta(ownerReferences=[owner, {**owner, "name": "y"}])
    assert said.endswith(
        'Only one reference can have Controller set to true. Found "true" in references for x and y'
    )
    assert of_meta(ownerReferences=[{"apiVersion": "apps/"}]) == [
        'metadata.ownerReferences[0].apiVersion: Invalid value: "apps/": version must not be empty',
        *(
            f'metadata.ownerReferences[0].{key}: Invalid value: "": must not be empty'
            for key in ("kind", "name", "uid")
        ),
    ]


def test_finalizers() -> None:
    assert of_meta(finalizers=["example.org/held", "foregroundDeletion"]) == []
    assert of_meta(finalizers=["held"]) == [
        'metadata.finalizers[0]: Invalid value: "held": name is neither a standard finalizer name nor is it '
        "fully qualified"
    ]
    assert of_meta(finalizers=["a b"])[0].startswith(
        'metadata.finalizers: Invalid value: "a b": name part must'
    )
    (both,) = of_meta(finalizers=["orphan", "foregroundDeletion"])
    assert both.endswith("finalizer orphan and foregroundDeletion cannot be both set")
    thing = named()
    thing["metadata"]["finalizers"] = ["held"]
    assert said_of(THING, thing) == []  # a kind of somebody else's may have its own


def test_what_is_being_deleted_gets_no_new_finalizers() -> None:
    old = load(
        "{metadata: {name: x, namespace: team, deletionTimestamp: now, finalizers: [example.org/a, "
        "example.org/b]}}"
    )
    fewer = load("{metadata: {name: x, namespace: team, finalizers: [example.org/b]}}")
    assert said_of_change(CONFIG_MAP, fewer, old) == []
    more = load("{metadata: {name: x, namespace: team, finalizers: [example.org/c]}}")
    assert said_of_change(CONFIG_MAP, more, old) == [
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        "found "
        'new finalizers []string{"example.org/c"}'
    ]
