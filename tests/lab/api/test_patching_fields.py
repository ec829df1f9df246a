"""Field sets: FieldsV1 against sets of paths, the fields of objects by their schema, and what differs."""

from __future__ import annotations

import json
from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patching_samples import DEPLOYMENT_MESSAGE, MAPPINGS, container, deployment, deployments, pod_spec

from gpuworkshop.lab.api.objects import Object, copy_of
from gpuworkshop.lab.api.patching import fieldsv1
from gpuworkshop.lab.api.patching.comparing import all_fields_in, compare, fields_in
from gpuworkshop.lab.api.patching.fieldsv1 import Fields, difference, intersection, is_valid, members, union
from gpuworkshop.lab.api.patching.shapes import UNKNOWN, Shape, shape_of

DEPLOYMENT = shape_of(DEPLOYMENT_MESSAGE)
Paths = set[tuple[str, ...]]
ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
PATHS: st.SearchStrategy[Paths] = st.sets(st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple), max_size=6)


def a_set(paths: Paths) -> Fields:
    """The FieldsV1 of the paths, built by no function under test but `union`."""

    def one(path: tuple[str, ...]) -> Fields:
        return reduce(lambda inner, element: {element: inner}, reversed(path), {})

    return reduce(union, map(one, sorted(paths)), {})


def paths_in(fields: Fields) -> Paths:
    found = list(members(fields))
    assert len(found) == len(set(found))
    return set(found)


def texts(fields: Fields) -> list[str]:
    return sorted(fieldsv1.text_of(path) for path in members(fields))


# Sets


@given(PATHS)
def test_a_set_has_the_members_that_it_is_made_of(paths: Paths) -> None:
    assert paths_in(a_set(paths)) == paths
    assert is_valid(a_set(paths))
    assert bool(a_set(paths)) is bool(paths)


@given(PATHS, PATHS)
def test_operations_are_those_of_sets(one: Paths, other: Paths) -> None:
    first, second = a_set(one), a_set(other)
    kept = json.dumps([first, second])
    assert union(first, second) == a_set(one | other)
    assert difference(first, second) == a_set(one - other)
    assert intersection(first, second) == a_set(one & other)
    assert json.dumps([first, second]) == kept


@given(PATHS, PATHS, PATHS)
def test_laws(one: Paths, other: Paths, third: Paths) -> None:
    a, b, c = a_set(one), a_set(other), a_set(third)
    assert union(a, b) == union(b, a)
    assert union(a, union(b, c)) == union(union(a, b), c)
    assert union(a, a) == intersection(a, a) == a
    assert difference(a, a) == {}
    assert union(difference(a, b), intersection(a, b)) == a
    assert intersection(difference(a, b), b) == {}
    assert difference(a, union(b, c)) == difference(difference(a, b), c)


@given(PATHS, PATHS)
def test_what_shares_nothing_is_left_as_it_is(one: Paths, other: Paths) -> None:
    first, second = a_set(one), a_set(other)
    assert (difference(first, second) is first) == one.isdisjoint(other)


def test_a_node_with_children_is_a_member_only_with_a_dot() -> None:
    node: Fields = {"f:labels": {"f:a": {}}}
    both = union(node, {"f:labels": {}})
    assert both == {"f:labels": {".": {}, "f:a": {}}}
    assert difference(both, {"f:labels": {"f:a": {}}}) == {"f:labels": {}}
    assert difference(both, {"f:labels": {}}) == node


def test_conflicts_are_told_level_by_level() -> None:
    fields: Fields = {
        "v:1": {},
        'k:{"b":1}': {".": {}, "f:z": {}},
        "f:z": {},
        "f:a": {"f:inner": {}},
        "i:3": {},
    }
    assert [fieldsv1.text_of(path) for path in members(fields)] == [
        ".z",
        "[b=1]",
        "[=1]",
        "[3]",
        ".a.inner",
        "[b=1].z",
    ]


def test_paths_read_as_in_messages() -> None:
    path = (
        "f:spec",
        "f:containers",
        'k:{"name":"web"}',
        "f:ports",
        'k:{"containerPort":80,"protocol":"TCP"}',
    )
    assert fieldsv1.text_of(path) == '.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"]'
    finalizer = ("f:metadata", "f:finalizers", 'v:"example.org/hold"')
    assert fieldsv1.text_of(finalizer) == '.metadata.finalizers[="example.org/hold"]'
    assert fieldsv1.text_of(("f:metadata", "f:labels", "f:app.kubernetes.io/name")) == (
        ".metadata.labels.app.kubernetes.io/name"
    )


@pytest.mark.parametrize(
    "sent",
    [
        None,
        [],
        "f:a",
        {"f:": {}},
        {"a": {}},
        {"x:1": {}},
        {"f:a": 1},
        {"f:a": None},
        {"k:x": {}},
        {'k:["a"]': {}},
        {"v:": {}},
        {'i:"0"': {}},
        {"f:a": {".": {"f:b": {}}}},
    ],
)
def test_what_a_client_may_not_send_as_a_set(sent: object) -> None:
    assert not is_valid(sent)


# The fields of an object


def test_fields_of_an_applied_deployment() -> None:
    """As the documentation of server-side apply shows them: items are members, mappings are not."""
    applied = deployment(
        container(ports=[{"containerPort": 80}], env=[{"name": "A", "value": "1"}], args=["a", "b"]),
        replicas=3,
    )
    assert fields_in(applied["spec"], DEPLOYMENT.child("spec")) == {
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {
                "f:containers": {
                    'k:{"name":"web"}': {
                        ".": {},
                        "f:name": {},
                        "f:image": {},
                        "f:args": {},
                        "f:ports": {
                            'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}
                        },
                        "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
                    }
                }
            },
        },
    }


def test_fields_of_a_new_object_have_its_mappings_too() -> None:
    """As a POST is recorded, except for what the API's types always have: spec, template, containers."""
    obj = deployment(container(resources={"limits": {"cpu": "1"}}))
    obj["metadata"] = {"labels": {"app": "web"}}
    changed, removed = compare({}, obj, DEPLOYMENT)
    assert removed == {}
    assert changed["f:metadata"] == {"f:labels": {".": {}, "f:app": {}}}
    template = changed["f:spec"]["f:template"]
    assert template["f:metadata"] == {"f:labels": {".": {}, "f:app": {}}}
    assert template["f:spec"] == {
        "f:containers": {
            'k:{"name":"web"}': {
                ".": {},
                "f:name": {},
                "f:image": {},
                "f:resources": {".": {}, "f:limits": {".": {}, "f:cpu": {}}},
            }
        }
    }


def test_empty_values_and_nulls() -> None:
    pod = DEPLOYMENT.child("spec").child("template").child("spec")
    assert fields_in({"securityContext": {}}, pod) == {"f:securityContext": {}}
    assert fields_in({"hostname": None}, pod) == {"f:hostname": {}}
    assert fields_in({"containers": []}, pod) == {}  # nothing to own in a list that merges
    assert fields_in({"tolerations": []}, pod) == {"f:tolerations": {}}  # a list that is one value
    assert fields_in({"affinity": {"podAffinity": {"x": {}}}}, pod)["f:affinity"] == {
        "f:podAffinity": {"f:x": {}}
    }


def test_sets_of_scalars_and_keyed_lists_of_metadata() -> None:
    metadata = {"finalizers": ["a", "b"], "ownerReferences": [{"uid": "1", "kind": "X"}]}
    assert fields_in({"metadata": metadata}, DEPLOYMENT)["f:metadata"] == {
        "f:finalizers": {'v:"a"': {}, 'v:"b"': {}},
        "f:ownerReferences": {'k:{"uid":"1"}': {}},  # a reference is one value
    }


# A custom kind's schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "rules": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "zone"],
                    "items": {
                        "type": "object",
                        "properties": {"name": {}, "zone": {"default": "any"}, "to": {}},
                    },
                },
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                "plain": {"type": "array", "items": {"type": "object"}},
                "whole": {"type": "object", "x-kubernetes-map-type": "atomic"},
                "weights": {
                    "type": "object",
                    "additionalProperties": {"type": "object", "properties": {"n": {}}},
                },
            },
        }
    },
}


def test_fields_by_the_schema_of_a_custom_kind() -> None:
    spec = {
        "rules": [{"name": "a", "to": "x"}],
        "tags": ["t"],
        "plain": [{"a": 1}],
        "whole": {"a": {"b": 1}},
        "weights": {"w": {"n": 1}},
        "unknown": {"deep": [1]},
    }
    assert fields_in({"spec": spec}, shape_of("", SCHEMA)) == {
        "f:spec": {
            "f:rules": {'k:{"name":"a","zone":"any"}': {".": {}, "f:name": {}, "f:to": {}}},
            "f:tags": {'v:"t"': {}},
            "f:plain": {},
            "f:whole": {},
            "f:weights": {"f:w": {".": {}, "f:n": {}}},
            "f:unknown": {".": {}, "f:deep": {}},
        }
    }


def test_without_a_schema_maps_merge_and_lists_are_one_value() -> None:
    obj = {"metadata": {"finalizers": ["x"]}, "spec": {"list": [{"name": "a"}], "map": {"a": 1}}}
    assert texts(fields_in(obj, shape_of(""))) == [
        '.metadata.finalizers[="x"]',
        ".spec",
        ".spec.list",
        ".spec.map",
        ".spec.map.a",
    ]


# What differs


def test_only_changed_leaves_are_told() -> None:
    old = deployment(container("a", env=[{"name": "A", "value": "1"}]), container("b"), replicas=1)
    new = copy_of(old)
    new["spec"]["replicas"] = 2
    pod_spec(new)["containers"][0]["env"][0]["value"] = "9"
    pod_spec(new)["containers"][1] = container("c")
    changed, removed = compare(old, new, DEPLOYMENT)
    at = ".spec.template.spec.containers"
    assert texts(changed) == [
        ".spec.replicas",
        f'{at}[name="a"].env[name="A"].value',
        f'{at}[name="c"]',
        f'{at}[name="c"].image',
        f'{at}[name="c"].name',
    ]
    assert texts(removed) == [f'{at}[name="b"]', f'{at}[name="b"].image', f'{at}[name="b"].name']


def test_an_atomic_value_changes_as_one() -> None:
    old, new = deployment(), deployment()
    new["spec"]["selector"]["matchLabels"]["tier"] = "x"
    pod_spec(old)["tolerations"], pod_spec(new)["tolerations"] = [{"key": "a"}], [{"key": "b"}]
    changed, removed = compare(old, new, DEPLOYMENT)
    assert texts(changed) == [".spec.selector", ".spec.template.spec.tolerations"]
    assert removed == {}


def test_items_that_share_a_key_are_one_value_and_one_without_goes_by_its_place() -> None:
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"value": "3"}]
    old, new = deployment(container(env=twice)), deployment(container(env=[*twice[:1], {"value": "4"}]))
    changed, removed = compare(old, new, DEPLOYMENT)
    at = '.spec.template.spec.containers[name="web"].env'
    a = f'{at}[name="A"]'
    assert texts(changed) == [f"{at}[1]", f"{at}[1].value", a, f"{a}.name", f"{a}.value"]
    assert texts(removed) == [f"{at}[2]", f"{at}[2].value"]


def test_order_alone_belongs_to_nobody() -> None:
    a, b = container("a"), container("b")
    assert compare(deployment(a, b), deployment(b, a), DEPLOYMENT) == ({}, {})


def test_null_is_as_good_as_absent() -> None:
    assert compare({"a": None}, {}, UNKNOWN) == compare({}, {"a": None}, UNKNOWN) == ({}, {})
    assert compare({"a": {"b": 1}}, {"a": None}, UNKNOWN) == ({}, {"f:a": {".": {}, "f:b": {}}})


@given(MAPPINGS, MAPPINGS)
def test_what_is_new_has_changed_and_what_is_missing_is_removed(old: Object, new: Object) -> None:
    check_comparison(old, new, UNKNOWN)


@given(deployments(), deployments())
def test_and_so_it_is_by_a_schema(old: Object, new: Object) -> None:
    check_comparison(
        old["spec"]["template"], new["spec"]["template"], DEPLOYMENT.child("spec").child("template")
    )


def check_comparison(old: Object, new: Object, shape: Shape) -> None:
    before, after = (paths_in(all_fields_in(obj, shape)) for obj in (old, new))
    changed, removed = (paths_in(fields) for fields in compare(old, new, shape))
    assert removed == before - after
    assert after - before <= changed <= after
    assert compare(new, new, shape) == ({}, {})


@given(deployments())
def test_applied_fields_are_a_part_of_all_fields(obj: Object) -> None:
    assert paths_in(fields_in(obj, DEPLOYMENT)) <= paths_in(all_fields_in(obj, DEPLOYMENT))
