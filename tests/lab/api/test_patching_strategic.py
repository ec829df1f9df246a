"""Strategic merge patch: what kubectl sends, the documented examples, the directives, the refusals."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from patching_samples import DEPLOYMENT_MESSAGE, POD_MESSAGE, container, deployment, deployments, pod_spec

from gpuworkshop.lab.api.objects import Object, copy_of
from gpuworkshop.lab.api.patching import strategic_merge
from gpuworkshop.lab.api.problems import ApiError

NODE_MESSAGE = "k8s.io.api.core.v1.Node"
SERVICE_MESSAGE = "k8s.io.api.core.v1.Service"


def patched(live: Object, patch: Object, message: str = DEPLOYMENT_MESSAGE) -> Object:
    return strategic_merge(live, patch, message)


def in_pod_spec(**fields: Any) -> Object:
    return {"spec": {"template": {"spec": fields}}}


def names(items: list[Object]) -> list[str]:
    return [item["name"] for item in items]


def env_of(obj: Object) -> list[Object]:
    found: list[Object] = pod_spec(obj)["containers"][0]["env"]
    return found


WITH_ENV = deployment(container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]))


# What kubectl sends


def test_set_image() -> None:
    live = deployment(container("web"), container("side", "envoy:1"))
    order = [{"name": "web"}, {"name": "side"}]
    patch = in_pod_spec(
        **{"$setElementOrder/containers": order}, containers=[{"name": "side", "image": "envoy:2"}]
    )
    assert pod_spec(patched(live, patch))["containers"] == [container("web"), container("side", "envoy:2")]


def test_set_env_adds_changes_and_removes() -> None:
    order = [{"name": "A"}, {"name": "C"}]
    env = [{"name": "A", "value": "9"}, {"name": "C", "value": "3"}, {"$patch": "delete", "name": "B"}]
    inner = {"name": "web", "$setElementOrder/env": order, "env": env}
    new = patched(
        WITH_ENV, in_pod_spec(**{"$setElementOrder/containers": [{"name": "web"}]}, containers=[inner])
    )
    assert env_of(new) == [{"name": "A", "value": "9"}, {"name": "C", "value": "3"}]
    assert pod_spec(new)["containers"][0]["image"] == "nginx:1.27"


def test_taint_replaces_the_list_and_untaint_unsets_it() -> None:
    node = {"spec": {"taints": [{"key": "old", "effect": "NoSchedule"}], "providerID": "aws:///x"}}
    taints = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    tainted = patched(node, {"spec": {"taints": taints}}, NODE_MESSAGE)
    assert tainted["spec"] == {"taints": taints, "providerID": "aws:///x"}
    assert patched(tainted, {"spec": {"taints": None}}, NODE_MESSAGE)["spec"] == {"providerID": "aws:///x"}


def test_cordon_and_uncordon() -> None:
    cordoned = patched({"spec": {}}, {"spec": {"unschedulable": True}}, NODE_MESSAGE)
    assert cordoned == {"spec": {"unschedulable": True}}
    assert patched(cordoned, {"spec": {"unschedulable": None}}, NODE_MESSAGE) == {"spec": {}}


def test_rollout_restart_annotates_the_template() -> None:
    patch = {
        "spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}}
    }
    metadata = patched(deployment(), patch)["spec"]["template"]["metadata"]
    assert metadata["annotations"] == {"kubectl.kubernetes.io/restartedAt": "now"}
    assert metadata["labels"] == {"app": "web"}


def test_rollout_undo_of_a_daemon_set_replaces_the_template() -> None:
    live = deployment(container(env=[{"name": "A", "value": "1"}]))
    before = deployment(container(image="nginx:1.26"))["spec"]["template"]
    new = patched(
        live, {"spec": {"template": {"$patch": "replace", **before}}}, "k8s.io.api.apps.v1.DaemonSet"
    )
    assert new["spec"]["template"] == before
    assert new["spec"]["selector"] == live["spec"]["selector"]


def test_apply_removes_what_the_manifest_dropped() -> None:
    """Client-side apply: deletions by null and `$patch: delete`, the order of the manifest."""
    live = deployment(container("web", env=[{"name": "A", "value": "1"}]), container("gone"), replicas=3)
    live["metadata"]["labels"] = {"team": "x"}
    patch = {
        "metadata": {"labels": None},
        "spec": {
            "replicas": None,
            "template": {
                "spec": {
                    "$setElementOrder/containers": [{"name": "new"}, {"name": "web"}],
                    "containers": [
                        container("new", "redis:7"),
                        {"name": "web", "env": None},
                        {"$patch": "delete", "name": "gone"},
                    ],
                }
            },
        },
    }
    new = patched(live, patch)
    assert "labels" not in new["metadata"]
    assert "replicas" not in new["spec"]
    assert pod_spec(new)["containers"] == [container("new", "redis:7"), container("web")]


def test_expose_style_ports_merge_by_their_number() -> None:
    live = {"spec": {"ports": [{"port": 80, "targetPort": 8080, "nodePort": 30_080}]}}
    patch = {"spec": {"ports": [{"port": 80, "targetPort": 9090}, {"port": 443}]}}
    new = patched(live, patch, SERVICE_MESSAGE)
    assert new["spec"]["ports"] == [{"port": 80, "targetPort": 9090, "nodePort": 30_080}, {"port": 443}]


def test_status_conditions_merge_by_type() -> None:
    live = {
        "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Other", "status": "True"}]}
    }
    patch = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    new = patched(live, patch, POD_MESSAGE)
    assert new["status"]["conditions"] == [
        {"type": "Ready", "status": "True"},
        {"type": "Other", "status": "True"},
    ]


# The documented examples


def test_documented_a_patched_container_comes_before_those_that_were_there() -> None:
    """Update API Objects in Place Using kubectl patch: patch-demo-ctr-2 is first."""
    live = deployment(container("patch-demo-ctr", "nginx"))
    new = patched(live, in_pod_spec(containers=[container("patch-demo-ctr-2", "redis")]))
    assert names(pod_spec(new)["containers"]) == ["patch-demo-ctr-2", "patch-demo-ctr"]


def test_documented_tolerations_have_no_merge_key_and_are_replaced() -> None:
    live = deployment()
    pod_spec(live)["tolerations"] = [{"effect": "NoSchedule", "key": "dedicated", "value": "test-team"}]
    wanted = [{"effect": "NoSchedule", "key": "disktype", "value": "ssd"}]
    assert pod_spec(patched(live, in_pod_spec(tolerations=wanted)))["tolerations"] == wanted


def test_documented_retain_keys_clears_the_other_strategy() -> None:
    live = deployment(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "30%"}})
    patch: Object = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert patched(live, patch)["spec"]["strategy"] == {"type": "Recreate"}
    patch["spec"]["strategy"]["rollingUpdate"] = None
    assert patched(live, patch)["spec"]["strategy"] == {"type": "Recreate"}


def test_documented_volumes_keep_only_the_source_that_is_named() -> None:
    live = deployment()
    pod_spec(live)["volumes"] = [{"name": "cache", "emptyDir": {}}]
    volume = {"$retainKeys": ["name", "hostPath"], "name": "cache", "hostPath": {"path": "/x"}}
    new = patched(live, in_pod_spec(volumes=[volume]))
    assert pod_spec(new)["volumes"] == [{"name": "cache", "hostPath": {"path": "/x"}}]


def test_the_order_of_a_list_leaves_live_items_before_what_they_preceded() -> None:
    """The order is the list's of the directive; what is only live keeps its place between."""
    live = deployment(*(container(name) for name in ("a", "b", "live", "c")))
    order = [{"name": "c"}, {"name": "new"}, {"name": "a"}, {"name": "b"}]
    new = patched(live, in_pod_spec(**{"$setElementOrder/containers": order}, containers=[container("new")]))
    assert names(pod_spec(new)["containers"]) == ["live", "c", "new", "a", "b"]


def test_documented_delete_from_primitive_list() -> None:
    live = {"metadata": {"finalizers": ["a", "b", "c"]}}
    patch = {
        "metadata": {
            "$deleteFromPrimitiveList/finalizers": ["b"],
            "$setElementOrder/finalizers": ["c", "d", "a"],
            "finalizers": ["d"],
        }
    }
    assert patched(live, patch)["metadata"] == {"finalizers": ["c", "d", "a"]}


# Directives


def test_patch_replace_in_a_list_drops_what_was_there() -> None:
    new = patched(WITH_ENV, in_pod_spec(containers=[{"$patch": "replace"}, container("only")]))
    assert pod_spec(new)["containers"] == [container("only")]


def test_patch_delete_of_a_mapping_empties_it() -> None:
    live = deployment(strategy={"type": "Recreate"})
    assert patched(live, {"spec": {"strategy": {"$patch": "delete"}}})["spec"]["strategy"] == {}


def test_patch_merge_is_the_same_as_none() -> None:
    patch = {"spec": {"$patch": "merge", "replicas": 2}}
    assert patched(deployment(), patch) == deployment(replicas=2)


def test_what_is_added_has_no_directives_and_no_nulls() -> None:
    inner = {**container("new"), "env": [{"name": "A"}, {"$patch": "delete", "name": "B"}], "command": None}
    added = [inner, {"$patch": "delete", "name": "unknown"}]
    patch = in_pod_spec(
        initContainers=added,
        securityContext={"$patch": "replace", "runAsUser": 5},
        affinity={"$patch": "delete"},
    )
    new = pod_spec(patched(deployment(), patch))
    assert new["initContainers"] == [container("new", env=[{"name": "A"}])]
    assert "securityContext" not in new
    assert "affinity" not in new


def test_finalizers_merge_as_a_set() -> None:
    live = {"metadata": {"finalizers": ["a", "b"]}}
    assert patched(live, {"metadata": {"finalizers": ["b", "c"]}})["metadata"]["finalizers"] == [
        "a",
        "b",
        "c",
    ]


def test_maps_merge_and_null_deletes_a_key() -> None:
    live = deployment(container(resources={"limits": {"cpu": "1", "nvidia.com/gpu": "1"}}))
    inner = {"name": "web", "resources": {"limits": {"cpu": None, "memory": "1Gi"}}}
    new = patched(live, in_pod_spec(containers=[inner]))
    assert pod_spec(new)["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "1", "memory": "1Gi"}}


def test_a_value_of_another_type_replaces() -> None:
    live = {"spec": {"ports": [{"port": 80, "targetPort": {"wrong": 1}}]}}
    patch = {"spec": {"ports": [{"port": 80, "targetPort": "http"}]}}
    assert patched(live, patch, SERVICE_MESSAGE)["spec"]["ports"] == [{"port": 80, "targetPort": "http"}]


# Refusals

BAD = {
    "unknown directive": (
        {"spec": {"$patch": "shred"}},
        500,
        r"unknown patch type: shred in map: map\[\$patch:shred\]",
    ),
    "unknown directive in a list": (
        in_pod_spec(containers=[{"name": "web", "$patch": "x"}]),
        500,
        "unknown patch type: x",
    ),
    "merge in a list": (
        in_pod_spec(containers=[{"name": "web", "$patch": "merge"}]),
        500,
        "merging lists cannot yet",
    ),
    "no merge key": (
        in_pod_spec(containers=[{"image": "x", "tty": True, "args": ["a", "b"]}]),
        500,
        r"^map: map\[args:\[a b\] image:x tty:true\] does not contain declared merge key: name$",
    ),
    "no merge key to delete by": (
        in_pod_spec(containers=[{"$patch": "delete"}]),
        500,
        "declared merge key: name",
    ),
    "scalars in a list of mappings": (
        in_pod_spec(containers=["web"]),
        400,
        "invalid patch format of primitive list",
    ),
    "retainKeys is no list": ({"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
    "retainKeys lacks a key": (
        {"spec": {"$retainKeys": ["paused"], "replicas": 1}},
        500,
        "patch content doesn't match retainKeys list",
    ),
    "order is no list": (
        {"spec": {"$setElementOrder/x": {}}},
        400,
        "invalid patch format of setElementOrder list",
    ),
    "order of scalars": (
        in_pod_spec(**{"$setElementOrder/containers": ["web"]}, containers=[container()]),
        400,
        "setEl",
    ),
    "order lacks an item": (
        in_pod_spec(**{"$setElementOrder/containers": [{"name": "b"}]}, containers=[container()]),
        500,
        r"doesn't match \$setElementOrder list:\n\[map\[name:b\]\]",
    ),
    "deleting from no list": (
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}},
        400,
        "invalid patch format of primitive list",
    ),
}


@pytest.mark.parametrize(("patch", "code", "words"), BAD.values(), ids=BAD)
def test_a_bad_patch_is_refused_in_the_real_words(patch: Object, code: int, words: str) -> None:
    live = deployment()
    with pytest.raises(ApiError, match=words) as refused:
        patched(live, patch)
    assert refused.value.code == code
    assert live == deployment()


# Properties


@given(deployments(), deployments())
def test_a_strategic_patch_is_idempotent_and_changes_neither(live: Object, patch: Object) -> None:
    before, sent = copy_of(live), copy_of(patch)
    once = patched(live, patch)
    assert patched(once, patch) == once
    assert (live, patch) == (before, sent)


@given(deployments(), deployments())
def test_every_item_of_the_patch_is_there_with_its_values(live: Object, patch: Object) -> None:
    found = {item["name"]: item for item in pod_spec(patched(live, patch))["containers"]}
    for item in pod_spec(patch)["containers"]:
        assert found[item["name"]]["image"] == item["image"]
    assert found.keys() == {item["name"] for obj in (live, patch) for item in pod_spec(obj)["containers"]}


@given(deployments())
def test_an_empty_patch_changes_nothing(live: Object) -> None:
    assert patched(live, {}) == live
    assert patched(live, live) == live
