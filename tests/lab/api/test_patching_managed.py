"""What creates, updates and patches do to managedFields."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patching_samples import (
    CONFIG_MAP_MESSAGE,
    DEPLOYMENT_MESSAGE,
    LATER,
    NOW,
    POD_MESSAGE,
    config_map,
    container,
    deployment,
    deployments,
    pod_spec,
)

from gpuworkshop.lab.api.objects import Object, copy_of
from gpuworkshop.lab.api.patching import merge_patch, track_update
from gpuworkshop.lab.api.patching.comparing import all_fields_in
from gpuworkshop.lab.api.patching.entries import ANCIENT, MOST_UPDATERS, entries_of
from gpuworkshop.lab.api.patching.fieldsv1 import intersection, members, text_of, union
from gpuworkshop.lab.api.patching.managed import owned
from gpuworkshop.lab.api.patching.shapes import shape_of

A_POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "x", "labels": {"run": "web"}},
    "spec": {"containers": [container()]},
    "status": {"phase": "Pending"},
}


def created(obj: Object, manager: str = "kubectl-create", message: str = CONFIG_MAP_MESSAGE) -> Object:
    return track_update({}, obj, manager, "", NOW, message)


def merged(live: Object, patch: Object, manager: str, at: float = LATER) -> Object:
    return track_update(live, merge_patch(live, patch), manager, "", at, CONFIG_MAP_MESSAGE)


def owners(obj: Object) -> dict[str, list[str]]:
    """The paths of each manager."""
    return {
        entry.manager: sorted(text_of(path) for path in members(entry.fields)) for entry in entries_of(obj)
    }


def managed_fields(obj: Object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = obj["metadata"]["managedFields"]
    return found


# Entries


def test_a_created_object_belongs_to_its_creator() -> None:
    assert managed_fields(created(config_map(a="1"))) == [
        {
            "manager": "kubectl-create",
            "operation": "Update",
            "apiVersion": "v1",
            "time": "2023-11-14T22:13:20Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
        }
    ]


def test_what_the_api_server_keeps_belongs_to_nobody() -> None:
    obj = config_map(a="1")
    obj["metadata"] |= {"uid": "1", "resourceVersion": "5", "generation": 1, "creationTimestamp": "now"}
    obj["metadata"] |= {"generateName": "set-", "ownerReferences": [{"uid": "9"}], "finalizers": ["f"]}
    assert owners(created(obj))["kubectl-create"] == [
        ".data",
        ".data.a",
        ".metadata.finalizers",
        '.metadata.finalizers[="f"]',
        ".metadata.generateName",
        ".metadata.ownerReferences",
        '.metadata.ownerReferences[uid="9"]',
    ]


def test_an_object_without_anything_to_own_has_no_entry() -> None:
    assert "managedFields" not in created(config_map())["metadata"]


def test_a_write_takes_what_it_changes_and_only_that() -> None:
    new = merged(created(config_map(a="1", b="2")), {"data": {"a": "9", "c": "3"}}, "kubectl-patch")
    assert owners(new) == {"kubectl-create": [".data", ".data.b"], "kubectl-patch": [".data.a", ".data.c"]}
    assert [entry["time"] for entry in managed_fields(new)] == [
        "2023-11-14T22:13:20Z",
        "2023-11-14T22:14:20Z",
    ]


def test_a_removed_field_is_nobody_s() -> None:
    new = merged(created(config_map(a="1", b="2")), {"data": {"a": None}}, "kubectl-patch")
    assert owners(new) == {"kubectl-create": [".data", ".data.b"]}
    assert owners(merged(new, {"data": None}, "kubectl-patch")) == {}


def test_a_manager_that_loses_all_loses_its_entry() -> None:
    live = created(config_map(a="1"))
    new = merged(merged(live, {"data": {"b": "2"}}, "one"), {"data": {"b": "3"}}, "two")
    assert owners(new) == {"kubectl-create": [".data", ".data.a"], "two": [".data.b"]}


def test_the_time_is_that_of_the_last_change() -> None:
    live = created(config_map(a="1"))
    unchanged = track_update(live, copy_of(live), "kubectl-create", "", LATER, CONFIG_MAP_MESSAGE)
    assert unchanged == live
    changed = merged(live, {"data": {"a": "2"}}, "kubectl-create")
    assert managed_fields(changed) == [{**managed_fields(live)[0], "time": "2023-11-14T22:14:20Z"}]


def test_a_client_that_knows_no_managed_fields_does_not_lose_them() -> None:
    live = created(config_map(a="1"))
    new = track_update(live, config_map(a="1"), "other", "", LATER, CONFIG_MAP_MESSAGE)
    assert new == live


def test_the_status_of_the_kubelet_as_on_a_real_cluster() -> None:
    pod = created(copy_of(A_POD), "kubectl-run", POD_MESSAGE)
    running = copy_of(pod)
    running["status"] = {
        "phase": "Running",
        "podIPs": [{"ip": "127.1.1.2"}],
        "conditions": [{"type": "Ready"}],
    }
    new = track_update(pod, running, "kubelet", "status", LATER, POD_MESSAGE)
    assert managed_fields(new)[0] == managed_fields(pod)[0]
    assert managed_fields(new)[1] == {
        "manager": "kubelet",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2023-11-14T22:14:20Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:status": {
                "f:phase": {},
                "f:podIPs": {".": {}, 'k:{"ip":"127.1.1.2"}': {".": {}, "f:ip": {}}},
                "f:conditions": {".": {}, 'k:{"type":"Ready"}': {".": {}, "f:type": {}}},
            }
        },
        "subresource": "status",
    }


def test_the_status_is_not_the_creator_s() -> None:
    pod = created(copy_of(A_POD), "kubectl-run", POD_MESSAGE)
    assert "f:status" not in managed_fields(pod)[0]["fieldsV1"]
    assert managed_fields(pod)[0]["fieldsV1"]["f:metadata"] == {"f:labels": {".": {}, "f:run": {}}}


def test_one_manager_has_an_entry_for_each_subresource() -> None:
    pod = created(copy_of(A_POD), "client", POD_MESSAGE)
    done = copy_of(pod)
    done["status"]["phase"] = "Failed"
    new = track_update(pod, done, "client", "status", LATER, POD_MESSAGE)
    assert [entry.get("subresource", "") for entry in managed_fields(new)] == ["", "status"]


def test_a_custom_kind_is_told_by_its_schema() -> None:
    rules = {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"properties": {"name": {}, "to": {}}},
    }
    schema = {"properties": {"spec": {"properties": {"rules": rules}}}}
    live: Object = {"apiVersion": "example.org/v1", "kind": "Route", "metadata": {"name": "x"}}
    live["spec"] = {"rules": [{"name": "a", "to": "1"}]}
    first = track_update({}, live, "one", "", NOW, "", schema)
    new = merge_patch(first, {"spec": {"rules": [{"name": "a", "to": "2"}]}})
    second = track_update(first, new, "two", "", LATER, "", schema)
    assert owners(second)["two"] == ['.spec.rules[name="a"].to']
    assert owners(track_update(first, new, "two", "", LATER, ""))["two"] == [".spec.rules"]


# The record itself


@pytest.mark.parametrize("clearing", [[], [{}]])
def test_an_empty_list_or_entry_clears_the_record_for_good(clearing: list[object]) -> None:
    live = merged(created(config_map(a="1")), {"metadata": {"managedFields": clearing}}, "admin")
    assert "managedFields" not in live["metadata"]
    assert "managedFields" not in merged(live, {"data": {"a": "2"}}, "admin")["metadata"]


def test_an_object_that_is_not_tracked_stays_so() -> None:
    live = config_map(a="1")
    assert merged(live, {"data": {"a": "2"}}, "kubectl-patch") == config_map(a="2")


def test_a_client_may_rewrite_the_record() -> None:
    """kubectl turns the entry of client-side apply into one of server-side apply by a JSON patch."""
    live = created(config_map(a="1"), "kubectl-client-side-apply")
    entry = {**managed_fields(live)[0], "manager": "kubectl", "operation": "Apply"}
    new = merged(live, {"metadata": {"managedFields": [entry]}}, "kubectl")
    assert managed_fields(new) == [entry]


@pytest.mark.parametrize(
    "wrong",
    [
        "text",
        ["text"],
        [{"manager": "x"}],
        [{"operation": "Steal", "fieldsV1": {}}],
        [{"operation": "Update", "manager": 5}],
        [{"operation": "Update", "fieldsType": "FieldsV2"}],
        [{"operation": "Update", "time": "yesterday"}],
        [{"operation": "Update", "fieldsV1": {"a": {}}}],
    ],
)
def test_a_record_that_makes_no_sense_is_ignored(wrong: object) -> None:
    live = created(config_map(a="1"))
    new = merged(live, {"metadata": {"managedFields": wrong}, "data": {"b": "2"}}, "client")
    assert owners(new) == {"kubectl-create": [".data", ".data.a"], "client": [".data.b"]}


def test_the_record_cannot_be_rewritten_through_a_subresource() -> None:
    pod = created(copy_of(A_POD), "kubectl-run", POD_MESSAGE)
    sent = copy_of(pod)
    sent["metadata"]["managedFields"] = []
    assert track_update(pod, sent, "client", "status", LATER, POD_MESSAGE) == pod


def test_too_many_updaters_share_an_entry() -> None:
    live = created(config_map(first="1"))
    for number in range(MOST_UPDATERS + 3):
        live = merged(live, {"data": {f"k{number:02}": "x"}}, f"client-{number:02}", LATER + number)
    found = owners(live)
    assert len(found) == MOST_UPDATERS
    assert found[ANCIENT] == [".data", ".data.first", ".data.k00", ".data.k01", ".data.k02", ".data.k03"]
    assert found["client-12"] == [".data.k12"]


def test_neither_object_is_changed() -> None:
    live = created(config_map(a="1"))
    new = merge_patch(live, {"data": {"a": "2"}})
    kept = copy_of(live), copy_of(new)
    track_update(live, new, "other", "", LATER, CONFIG_MAP_MESSAGE)
    assert (live, new) == kept


# Properties

MANAGERS = st.sampled_from(["one", "two", "three"])


@given(deployments(), st.lists(st.tuples(MANAGERS, deployments()), max_size=4))
def test_every_field_has_one_owner_among_updaters(first: Object, writes: list[tuple[str, Object]]) -> None:
    """Whatever is written: updaters never share a field, and own nothing that is not there."""
    shape = shape_of(DEPLOYMENT_MESSAGE)
    live = track_update({}, first, "creator", "", NOW, DEPLOYMENT_MESSAGE)
    for at, (manager, obj) in enumerate(writes):
        new = {**obj, "metadata": {**obj["metadata"], "managedFields": live["metadata"]["managedFields"]}}
        live = track_update(live, new, manager, "", LATER + at, DEPLOYMENT_MESSAGE)
        there = owned(all_fields_in(live, shape), "")
        seen: dict[str, Any] = {}
        for entry in entries_of(live):
            assert entry.fields
            assert intersection(entry.fields, seen) == {}
            assert intersection(entry.fields, there) == entry.fields
            seen = union(seen, entry.fields)


@given(deployments(), deployments())
def test_writing_the_same_again_is_no_op(first: Object, second: Object) -> None:
    live = track_update({}, first, "one", "", NOW, DEPLOYMENT_MESSAGE)
    once = track_update(live, second, "two", "", LATER, DEPLOYMENT_MESSAGE)
    assert track_update(once, second, "three", "", LATER + 1, DEPLOYMENT_MESSAGE) == once


def test_set_image_takes_the_image_alone() -> None:
    live = created(deployment(container()), "kubectl-client-side-apply", DEPLOYMENT_MESSAGE)
    new = copy_of(live)
    pod_spec(new)["containers"][0]["image"] = "nginx:1.28"
    new = track_update(live, new, "kubectl-set", "", LATER, DEPLOYMENT_MESSAGE)
    assert owners(new)["kubectl-set"] == ['.spec.template.spec.containers[name="web"].image']
    assert '.spec.template.spec.containers[name="web"].image' not in owners(new)["kubectl-client-side-apply"]
