"""Server-side apply: the documented behaviours by name, conflicts in the real words, and properties."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patching_samples import (
    CONFIG_MAP_MESSAGE,
    DEPLOYMENT_MESSAGE,
    LATER,
    NOW,
    config_map,
    container,
    deployment,
    deployments,
    pod_spec,
)

from gpuworkshop.lab.api.objects import Object, copy_of
from gpuworkshop.lab.api.patching import apply, merge_patch, track_update
from gpuworkshop.lab.api.patching.entries import entries_of
from gpuworkshop.lab.api.patching.fieldsv1 import members, text_of
from gpuworkshop.lab.api.patching.last_applied import ANNOTATION
from gpuworkshop.lab.api.patching.merging import merged
from gpuworkshop.lab.api.patching.shapes import shape_of
from gpuworkshop.lab.api.problems import ApiError

IMAGE = '.spec.template.spec.containers[name="web"].image'
OMITS = (
    'associative list with keys has an element that omits key field "name" (and doesn\'t have default value)'
)
MESSAGES = {"Deployment": DEPLOYMENT_MESSAGE, "ConfigMap": CONFIG_MAP_MESSAGE}


def applied(
    live: Object | None, obj: Object, manager: str = "kubectl", force: bool = False, at: float = LATER
) -> Object:
    return apply(live, obj, manager, force, MESSAGES[obj["kind"]], at)


def updated(live: Object, patch: Object, manager: str) -> Object:
    return track_update(live, merge_patch(live, patch), manager, "", LATER, MESSAGES[live["kind"]])


def created(obj: Object, manager: str = "kubectl-client-side-apply") -> Object:
    return track_update({}, obj, manager, "", NOW, MESSAGES[obj["kind"]])


def owners(obj: Object) -> dict[tuple[str, str], list[str]]:
    return {
        (entry.manager, entry.operation): sorted(text_of(path) for path in members(entry.fields))
        for entry in entries_of(obj)
    }


def conflict(live: Object, obj: Object, manager: str = "other") -> ApiError:
    with pytest.raises(ApiError) as refused:
        applied(live, obj, manager)
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    assert all(cause["reason"] == "FieldManagerConflict" for cause in refused.value.details["causes"])
    return refused.value


def plain(obj: Object) -> Object:
    """The object without its record."""
    return {
        **obj,
        "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"},
    }


# Documented behaviours


def test_apply_creates() -> None:
    obj = config_map(a="1")
    new = applied(None, obj, at=NOW)
    assert plain(new) == obj
    assert new["metadata"]["managedFields"] == [
        {
            "manager": "kubectl",
            "operation": "Apply",
            "apiVersion": "v1",
            "time": "2023-11-14T22:13:20Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {"f:a": {}}},
        }
    ]


def test_applying_the_same_again_changes_nothing_not_even_the_time() -> None:
    live = applied(None, deployment(), at=NOW)
    assert applied(live, deployment(), at=LATER) is live


def test_a_field_that_is_no_longer_applied_goes() -> None:
    live = applied(None, config_map(a="1", b="2"))
    new = applied(live, config_map(a="1"))
    assert new["data"] == {"a": "1"}
    assert owners(new) == {("kubectl", "Apply"): [".data.a"]}
    assert "data" not in applied(new, config_map())


def test_what_others_set_stays() -> None:
    live = updated(applied(None, config_map(a="1")), {"data": {"b": "2"}}, "kubectl-patch")
    new = applied(live, config_map(a="9"))
    assert new["data"] == {"a": "9", "b": "2"}
    assert owners(new) == {("kubectl", "Apply"): [".data.a"], ("kubectl-patch", "Update"): [".data.b"]}


def test_what_nobody_owns_stays_when_its_neighbour_goes() -> None:
    live = copy_of(applied(None, config_map(a="1", b="2")))
    live["data"]["defaulted"] = "x"
    assert applied(live, config_map(a="1"))["data"] == {"a": "1", "defaulted": "x"}


def test_two_that_apply_the_same_value_share_it() -> None:
    live = applied(applied(None, config_map(a="1")), config_map(a="1"), "other")
    assert owners(live) == {("kubectl", "Apply"): [".data.a"], ("other", "Apply"): [".data.a"]}
    left = applied(live, config_map())
    assert left["data"] == {"a": "1"}
    assert owners(left) == {("other", "Apply"): [".data.a"]}
    assert "data" not in applied(left, config_map(), "other")


def test_sharers_who_change_the_value_conflict_with_each_other() -> None:
    live = applied(applied(None, config_map(a="1")), config_map(a="1"), "other")
    assert conflict(live, config_map(a="2"), "kubectl").message.endswith('conflict with "other": .data.a')


def test_giving_up_replicas_for_an_autoscaler() -> None:
    """The documentation's example: the autoscaler takes replicas, and the manifest leaves them out."""
    live = applied(None, deployment(replicas=3))
    scaled = updated(live, {"spec": {"replicas": 5}}, "kube-controller-manager")
    assert ".spec.replicas" not in owners(scaled)["kubectl", "Apply"]
    new = applied(scaled, deployment())
    assert new["spec"]["replicas"] == 5
    refusal = conflict(scaled, deployment(replicas=3), "kubectl")
    assert refusal.message.endswith('"kube-controller-manager" using apps/v1: .spec.replicas')


def test_force_takes_the_field_over() -> None:
    live = applied(None, config_map(a="1", b="2"))
    new = applied(live, config_map(a="9"), "other", force=True)
    assert new["data"] == {"a": "9", "b": "2"}
    assert owners(new) == {("kubectl", "Apply"): [".data.b"], ("other", "Apply"): [".data.a"]}


def test_items_of_lists_are_owned_one_by_one() -> None:
    live = applied(None, deployment(container("web")))
    both = applied(live, deployment(container("web"), container("side")), "injector")
    assert [found["name"] for found in pod_spec(both)["containers"]] == ["web", "side"]
    alone = applied(both, deployment(container("side")), "injector")
    assert [found["name"] for found in pod_spec(alone)["containers"]] == ["web", "side"]
    gone = applied(alone, deployment(container("x")))
    assert [found["name"] for found in pod_spec(gone)["containers"]] == ["side", "x"]


def test_ports_are_told_apart_by_number_and_protocol() -> None:
    dns = [{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}]
    live = applied(None, deployment(container(ports=dns)))
    ports = pod_spec(live)["containers"][0]["ports"]
    assert len(ports) == 2
    new = applied(live, deployment(container(ports=dns[1:])))
    assert pod_spec(new)["containers"][0]["ports"] == dns[1:]


def test_an_atomic_list_is_taken_whole() -> None:
    obj = deployment()
    pod_spec(obj)["tolerations"] = [{"key": "a"}]
    live = applied(None, obj)
    other = deployment()
    pod_spec(other)["tolerations"] = [{"key": "b"}]
    assert ".spec.template.spec.tolerations" in conflict(live, other).message
    assert pod_spec(applied(live, other, "other", force=True))["tolerations"] == [{"key": "b"}]


def test_a_changed_selector_conflicts_as_one() -> None:
    live, other = applied(None, deployment()), deployment()
    other["spec"]["selector"]["matchLabels"] = {"app": "x"}
    assert (
        conflict(live, other).message
        == 'Apply failed with 1 conflict: conflict with "kubectl": .spec.selector'
    )


def test_metadata_that_the_server_keeps_is_neither_applied_nor_owned() -> None:
    live = copy_of(applied(None, config_map(a="1")))
    live["metadata"] |= {"uid": "7", "creationTimestamp": "2023-11-14T22:13:20Z", "generation": 3}
    obj = config_map(a="1")
    obj["metadata"] |= {"creationTimestamp": None, "generation": 9, "labels": {"team": "x"}}
    new = applied(live, obj)
    assert (new["metadata"]["creationTimestamp"], new["metadata"]["generation"]) == (
        "2023-11-14T22:13:20Z",
        3,
    )
    assert owners(new) == {("kubectl", "Apply"): [".data.a", ".metadata.labels.team"]}


def test_null_unsets_and_is_owned() -> None:
    live = created(deployment(replicas=3))
    new = applied(live, deployment(replicas=None), "other", force=True)
    assert "replicas" not in new["spec"]
    assert ".spec.replicas" in owners(new)["other", "Apply"]


def test_a_status_in_a_manifest_is_not_owned_and_conflicts_with_nobody() -> None:
    """Typed clients such as helm 4 send `status: {}`, and controllers write the status meanwhile."""
    live = applied(None, deployment())
    ready = {**live, "status": {"replicas": 1}}
    live = track_update(live, ready, "kube-controller-manager", "status", LATER, DEPLOYMENT_MESSAGE)
    new = applied(live, {**deployment(), "status": {"replicas": 5}})
    assert owners(new)["kube-controller-manager", "Update"] == [".status.replicas"]
    assert applied(live, {**deployment(), "status": {}}) is live


def test_the_status_is_applied_through_its_subresource() -> None:
    live = applied(None, deployment(replicas=1))
    obj = {**deployment(replicas=1), "status": {"replicas": 1}}
    new = apply(live, obj, "controller", False, DEPLOYMENT_MESSAGE, LATER, subresource="status")
    assert owners(new)["controller", "Apply"] == [".status.replicas"]
    assert [entry.get("subresource") for entry in new["metadata"]["managedFields"]] == ["status", None]


# Conflicts


def test_one_conflict_in_the_real_words() -> None:
    refusal = conflict(created(deployment(replicas=1)), deployment(replicas=2))
    owner = '"kubectl-client-side-apply" using apps/v1'
    assert refusal.message == f"Apply failed with 1 conflict: conflict with {owner}: .spec.replicas"
    assert refusal.details == {
        "causes": [
            {
                "reason": "FieldManagerConflict",
                "message": 'conflict with "kubectl-client-side-apply" using apps/v1',
                "field": ".spec.replicas",
            }
        ]
    }


def test_several_conflicts_are_listed_by_manager() -> None:
    live = updated(
        created(deployment(container(), replicas=1, paused=True)), {"spec": {"replicas": 2}}, "scaler"
    )
    status = {**live, "spec": {**live["spec"], "minReadySeconds": 5}}
    live = track_update(live, status, "kubelet", "status", LATER, DEPLOYMENT_MESSAGE)
    live = applied(live, deployment(container(), progressDeadlineSeconds=9), "helm")
    wanted = deployment(container(image="x"), replicas=3, paused=False, progressDeadlineSeconds=1)
    refusal = conflict(live, wanted)
    assert refusal.message.splitlines() == [
        'Apply failed with 5 conflicts: conflicts with "helm":',
        "- .spec.progressDeadlineSeconds",
        f"- {IMAGE}",
        'conflicts with "kubectl-client-side-apply" using apps/v1:',
        "- .spec.paused",
        f"- {IMAGE}",
        'conflicts with "scaler" using apps/v1:',
        "- .spec.replicas",
    ]
    assert len(refusal.details["causes"]) == 5


def test_a_conflict_with_a_subresource_says_so() -> None:
    live = created(deployment(replicas=1))
    scaled = merge_patch(live, {"spec": {"replicas": 2}})
    live = track_update(live, scaled, "kubectl", "scale", LATER, DEPLOYMENT_MESSAGE)
    words = 'conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas'
    assert conflict(live, deployment(replicas=3)).message.endswith(words)


def test_the_same_value_is_no_conflict() -> None:
    live = applied(created(deployment(replicas=1)), deployment(replicas=1), "other")
    assert ".spec.replicas" in owners(live)["other", "Apply"]
    assert ".spec.replicas" in owners(live)["kubectl-client-side-apply", "Update"]


def test_an_untracked_object_was_somebody_s_before() -> None:
    refusal = conflict(config_map(a="1"), config_map(a="2"))
    assert refusal.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a'
    )
    new = applied(config_map(a="1"), config_map(a="1", b="2"))
    assert owners(new) == {
        ("before-first-apply", "Update"): [".data", ".data.a"],
        ("kubectl", "Apply"): [".data.a", ".data.b"],
    }


# From client-side apply


def client_side(obj: Object) -> Object:
    """As `kubectl apply` creates it."""
    text = json.dumps(obj)
    metadata = {**obj["metadata"], "annotations": {ANNOTATION: text}}
    return created({**obj, "metadata": metadata})


def test_kubectl_moves_from_client_side_apply_without_a_conflict() -> None:
    live = client_side(config_map(a="1"))
    new = applied(live, config_map(a="2"), "kubectl")
    assert new["data"] == {"a": "2"}
    assert ".data.a" in owners(new)["kubectl", "Apply"]
    assert json.loads(new["metadata"]["annotations"][ANNOTATION])["data"] == {"a": "2"}
    assert ".metadata.annotations." + ANNOTATION in owners(new)["kubectl-client-side-apply", "Update"]


def test_other_managers_conflict_with_client_side_apply() -> None:
    refusal = conflict(client_side(config_map(a="1")), config_map(a="2"), "helm")
    assert refusal.message.endswith('"kubectl-client-side-apply" using v1: .data.a')


def test_kubectl_conflicts_with_what_changed_since_client_side_apply() -> None:
    live = updated(client_side(config_map(a="1", b="1")), {"data": {"a": "5"}}, "kubectl-edit")
    refusal = conflict(live, config_map(a="2", b="2"), "kubectl")
    assert refusal.message == 'Apply failed with 1 conflict: conflict with "kubectl-edit" using v1: .data.a'


@pytest.mark.parametrize("text", ["no JSON", "[]", ""])
def test_a_spoilt_annotation_allows_nothing(text: str) -> None:
    live = updated(client_side(config_map(a="1")), {"metadata": {"annotations": {ANNOTATION: text}}}, "x")
    conflict(live, config_map(a="2"), "kubectl")


# Refusals


@pytest.mark.parametrize("missing", ["apiVersion", "kind"])
def test_an_applied_object_says_what_it_is(missing: str) -> None:
    obj = {key: value for key, value in config_map(a="1").items() if key != missing}
    with pytest.raises(ApiError, match=missing) as refused:
        apply(None, obj, "kubectl", False, CONFIG_MAP_MESSAGE, NOW)
    assert refused.value.code == 400


def test_managed_fields_cannot_be_applied() -> None:
    obj = config_map(a="1")
    obj["metadata"]["managedFields"] = [{"manager": "x"}]
    with pytest.raises(ApiError, match=r"^metadata\.managedFields must be nil$") as refused:
        applied(None, obj)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (
            deployment({"image": "x"}),
            f".containers: element 0: {OMITS}",
        ),
        (
            deployment(container("a"), container("a")),
            '.containers: duplicate entries for key [name="a"]',
        ),
        (
            deployment(container(env=[{"value": "1"}])),
            f'.containers[name="web"].env: element 0: {OMITS}',
        ),
    ],
)
def test_lists_whose_items_cannot_be_told_apart(obj: Object, words: str) -> None:
    with pytest.raises(ApiError) as refused:
        applied(None, obj)
    about = "(x/web; apps/v1, Kind=Deployment)"
    assert refused.value.message == f"failed to create typed patch object {about}: .spec.template.spec{words}"
    assert refused.value.code == 500


def test_live_duplicates_are_kept() -> None:
    twice = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"value": "nameless"}]
    live = created(deployment(container(env=twice)))
    new = applied(live, deployment(container(env=[{"name": "B", "value": "3"}])))
    assert pod_spec(new)["containers"][0]["env"] == [*twice, {"name": "B", "value": "3"}]


# Merging


@pytest.mark.parametrize(
    ("live", "wanted", "expected"),
    [
        ("ab", "cab", "cab"),
        ("abc", "ca", "bca"),
        ("ba", "xa", "bxa"),
        ("ab", "bxay", "bxay"),
        ("", "ab", "ab"),
        ("axb", "ba", "xba"),
        ("abc", "b", "abc"),
    ],
)
def test_order_of_a_merged_list(live: str, wanted: str, expected: str) -> None:
    new = merged(
        deployment(*map(container, live)) if live else {},
        deployment(*map(container, wanted)),
        shape_of(DEPLOYMENT_MESSAGE),
    )
    assert "".join(found["name"] for found in pod_spec(new)["containers"]) == expected


def test_a_custom_kind_merges_by_its_schema() -> None:
    items: Object = {"properties": {"name": {}, "to": {}}}
    rules = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": items}
    schema = {"properties": {"spec": {"properties": {"rules": rules}}}}

    def route(*rules: Object) -> Object:
        head = {"apiVersion": "example.org/v1", "kind": "Route", "metadata": {"name": "x"}}
        return {**head, "spec": {"rules": list(rules)}}

    def put(live: Object | None, obj: Object, manager: str, by: dict[str, Any] | None) -> Object:
        return apply(live, obj, manager, False, "", NOW, by)

    one, two = {"name": "a", "to": "1"}, {"name": "b", "to": "2"}
    assert put(put(None, route(one), "m", schema), route(two), "n", schema)["spec"]["rules"] == [one, two]
    with pytest.raises(ApiError, match=r'conflict with "m": \.spec\.rules$'):
        put(put(None, route(one), "m", None), route(two), "n", None)


# Properties

MANAGERS = st.sampled_from(["one", "two", "three"])


@given(st.lists(st.tuples(MANAGERS, deployments()), min_size=1, max_size=4))
def test_applying_again_is_no_op_whatever_went_before(steps: list[tuple[str, Object]]) -> None:
    live: Object | None = None
    for at, (manager, obj) in enumerate(steps):
        kept = copy_of(live) if live else None
        new = applied(live, obj, manager, force=True, at=NOW + at)
        assert live == kept
        assert applied(new, obj, manager, at=LATER) is new
        live = new


@given(deployments(), deployments())
def test_one_manager_alone_gets_exactly_what_it_applies(first: Object, second: Object) -> None:
    new = applied(applied(None, first), second)
    assert by_name(plain(new)) == by_name(second)


@given(deployments(), deployments())
def test_who_gives_everything_up_leaves_the_others_as_if_never_there(first: Object, second: Object) -> None:
    both = applied(applied(None, first, "one"), second, "two", force=True)
    nothing = {key: value for key, value in second.items() if key != "spec"}
    nothing["metadata"] = {"name": "web", "namespace": "x"}
    assert by_name(plain(applied(both, nothing, "one"))) == by_name(second)


@given(deployments(), deployments())
def test_without_a_conflict_force_makes_no_difference(first: Object, second: Object) -> None:
    live = applied(None, first, "one")
    forced = applied(live, second, "two", force=True)
    try:
        unforced = applied(live, second, "two")
    except ApiError as refusal:
        taken = {cause["field"] for cause in refusal.details["causes"]}
        assert taken
        assert taken.isdisjoint(owners(forced).get(("one", "Apply"), []))
    else:
        assert unforced == forced


def by_name(obj: Object) -> Object:
    """The object with its merging lists as mappings: order is not what is compared."""
    same = copy_of(obj)
    containers = pod_spec(same)["containers"]
    for found in containers:
        found["env"] = {item["name"]: item["value"] for item in found.get("env", [])}
        found["ports"] = {item["containerPort"] for item in found.get("ports", [])}
    pod_spec(same)["containers"] = {found["name"]: found for found in containers}
    return same
