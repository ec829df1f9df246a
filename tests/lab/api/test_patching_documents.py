"""JSON patch (RFC 6902) and merge patch (RFC 7386), and the answers to those that do not fit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from patching_samples import MAPPINGS, container, deployment, pod_spec

from gpuworkshop.lab.api.kinds import DEPLOYMENT, Kind
from gpuworkshop.lab.api.objects import Object, copy_of
from gpuworkshop.lab.api.patching import json_patch, merge_patch
from gpuworkshop.lab.api.patching.json_patches import MOST_OPERATIONS
from gpuworkshop.lab.api.patching.merge import without_nulls
from gpuworkshop.lab.api.problems import ApiError

CUSTOM = Kind("example.org", "v1", "Widget", "widgets")


def patched(obj: Object, *operations: dict[str, Any]) -> Object:
    return json_patch(copy_of(obj), list(operations), DEPLOYMENT, "web")


def test_rollout_undo_replaces_template_and_annotations() -> None:
    live = deployment(container(image="broken"))
    live["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "2"}
    before = deployment(container(image="nginx:1.26"))["spec"]["template"]
    new = patched(
        live,
        {"op": "replace", "path": "/spec/template", "value": before},
        {"op": "replace", "path": "/metadata/annotations", "value": {"a": "b"}},
    )
    assert pod_spec(new)["containers"][0]["image"] == "nginx:1.26"
    assert new["metadata"]["annotations"] == {"a": "b"}


def test_paths_escape_slashes_and_lists_take_positions() -> None:
    live = deployment(container("a"), container("b"))
    live["metadata"]["labels"] = {}
    at = "/spec/template/spec/containers"
    new = patched(
        live,
        {"op": "add", "path": "/metadata/labels/example.org~1team", "value": "vision"},
        {"op": "add", "path": f"{at}/-", "value": container("last")},
        {"op": "add", "path": f"{at}/0", "value": container("first")},
        {"op": "remove", "path": f"{at}/1"},
    )
    assert new["metadata"]["labels"] == {"example.org/team": "vision"}
    assert [found["name"] for found in pod_spec(new)["containers"]] == ["first", "b", "last"]


def test_move_copy_and_a_test_that_holds() -> None:
    live = deployment(replicas=2)
    new = patched(
        live,
        {"op": "test", "path": "/spec/replicas", "value": 2},
        {"op": "copy", "from": "/spec/replicas", "path": "/spec/minReadySeconds"},
        {"op": "move", "from": "/spec/minReadySeconds", "path": "/spec/revisionHistoryLimit"},
    )
    assert (new["spec"]["replicas"], new["spec"]["revisionHistoryLimit"]) == (2, 2)
    assert "minReadySeconds" not in new["spec"]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/spec/replicas", "value": 3},
        {"op": "test", "path": "/spec/nothing", "value": 3},
        {"op": "remove", "path": "/spec/nothing"},
        {"op": "replace", "path": "/spec/nothing", "value": 1},
        {"op": "add", "path": "/nothing/in", "value": 1},
        {"op": "add", "path": "/spec/template/spec/containers/7", "value": {}},
        {"op": "add", "path": "/spec/replicas/x", "value": 1},
        {"op": "add", "path": "no-slash", "value": 1},
        {"op": "add", "path": "/spec/x"},
        {"op": "zip", "path": "/spec"},
        {"path": "/spec"},
        {"op": "remove", "path": ""},
    ],
)
def test_an_operation_that_does_not_fit_is_invalid(operation: dict[str, Any]) -> None:
    with pytest.raises(ApiError) as refused:
        patched(deployment(replicas=2), operation)
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert refused.value.message == "the server rejected our request due to an error in our request"
    assert refused.value.details == {}  # with any, kubectl would not show the message


@pytest.mark.parametrize("patch", [{"op": "add"}, "text", 5, None, ["x"], [None]])
def test_what_is_no_list_of_operations_is_a_bad_request(patch: object) -> None:
    with pytest.raises(ApiError, match=r"^error decoding patch: json: cannot unmarshal") as refused:
        json_patch(deployment(), patch, DEPLOYMENT, "web")
    assert refused.value.code == 400


def test_too_many_operations() -> None:
    patch = [{"op": "test", "path": "", "value": {}}] * (MOST_OPERATIONS + 1)
    with pytest.raises(ApiError, match="patch is 10000, got 10001") as refused:
        json_patch({}, patch, DEPLOYMENT, "web")
    assert refused.value.code == 413


def test_the_whole_must_stay_an_object() -> None:
    with pytest.raises(
        ApiError, match=r'Deployment\.apps "web" is invalid: patch: Invalid value: 1'
    ) as refused:
        patched(deployment(), {"op": "replace", "path": "", "value": 1})
    assert refused.value.code == 422


def test_null_unsets_a_typed_field_and_stays_in_a_custom_one() -> None:
    operation = {"op": "add", "path": "/spec/replicas", "value": None}
    assert "replicas" not in patched(deployment(replicas=2), operation)["spec"]
    assert json_patch({"spec": {}}, [operation], CUSTOM, "x") == {"spec": {"replicas": None}}


def test_merge_patch_of_label_and_scale() -> None:
    live = deployment(replicas=1)
    live["metadata"]["labels"] = {"a": "1", "b": "2"}
    new = merge_patch(
        live, {"metadata": {"labels": {"a": "3", "b": None, "c": "4"}}, "spec": {"replicas": 5}}
    )
    assert new["metadata"]["labels"] == {"a": "3", "c": "4"}
    assert new["spec"]["replicas"] == 5
    assert new["spec"]["template"] == live["spec"]["template"]


# The examples of RFC 7386, appendix A, that are objects.
RFC_7386 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("base", "patch", "expected"), RFC_7386)
def test_merge_patch_examples_of_the_rfc(base: Object, patch: Object, expected: Object) -> None:
    assert merge_patch(base, patch) == expected


@given(MAPPINGS, MAPPINGS)
def test_merge_patch_is_idempotent_and_changes_neither(base: Object, patch: Object) -> None:
    before, sent = copy_of(base), copy_of(patch)
    once = merge_patch(base, patch)
    assert merge_patch(once, patch) == once
    assert (base, patch) == (before, sent)


@given(MAPPINGS, MAPPINGS)
def test_a_merge_patch_leads_from_any_object_to_any(old: Object, new: Object) -> None:
    assert merge_patch(old, difference_of(old, new)) == new


def difference_of(old: Object, new: Object) -> Object:
    patch: Object = dict.fromkeys(old.keys() - new.keys())
    for key, value in new.items():
        before = old.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            patch[key] = difference_of(before, value)
        elif before != value:
            patch[key] = value
    return patch


def test_nulls_go_from_mappings_at_every_depth() -> None:
    assert without_nulls({"a": None, "b": [{"c": None, "d": 1}, None]}) == {"b": [{"d": 1}, None]}
