"""How objects go: finalizers, who goes first, the grace of pods, namespaces on their way out."""

from __future__ import annotations

from typing import Any

import pytest
from access_lab import START, Clock
from own_api_server import new_registry

from gpuworkshop.lab.api.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, POD, SECRET
from gpuworkshop.lab.api.objects import Object, copy_of, is_deleted, meta, name_of, timestamp
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry

HOLD = "example.org/hold"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(clock: Clock) -> Registry:
    return new_registry(clock)


def a_map(registry: Registry, *finalizers: str) -> Object:
    metadata = {"name": "one", "namespace": "default", "finalizers": list(finalizers)}
    return registry.create(CONFIG_MAP, {"metadata": metadata})


def a_pod(registry: Registry, phase: str = "Running", node: str = "n", **spec: Any) -> Object:
    whole = {"containers": [{"name": "main", "image": "nginx"}], **spec}
    if node:
        whole["nodeName"] = node
    registry.create(POD, {"metadata": {"name": "web", "namespace": "default"}, "spec": whole})
    changed = registry.modify(
        POD, "default", "web", lambda pod: pod.update(status={"phase": phase}), "status"
    )
    assert changed is not None
    return changed


def delete(registry: Registry, pod: str = "web", **how: Any) -> Object | None:
    """Delete the pod; what is left of it."""
    registry.delete(POD, "default", pod, **how)
    return registry.find(POD, "default", pod)


def release(registry: Registry, *left: str) -> None:
    registry.modify(CONFIG_MAP, "default", "one", lambda obj: meta(obj).update(finalizers=list(left)))


def test_without_anything_that_holds_it_an_object_goes_at_once(registry: Registry) -> None:
    made = a_map(registry)
    last = registry.delete(CONFIG_MAP, "default", "one")
    assert last is not None
    assert int(meta(last)["resourceVersion"]) == registry.store.revision > int(meta(made)["resourceVersion"])
    assert registry.find(CONFIG_MAP, "default", "one") is None


def test_finalizers_hold_it_until_the_last_is_gone(registry: Registry, clock: Clock) -> None:
    a_map(registry, HOLD, "example.org/other")
    registry.delete(CONFIG_MAP, "default", "one")
    held = registry.get(CONFIG_MAP, "default", "one")
    assert meta(held)["deletionTimestamp"] == timestamp(START)
    assert meta(held)["deletionGracePeriodSeconds"] == 0
    clock.now += 60
    revision = registry.store.revision
    registry.delete(CONFIG_MAP, "default", "one")
    assert registry.get(CONFIG_MAP, "default", "one") is held
    assert registry.store.revision == revision, "to be deleted again changes nothing"
    release(registry, HOLD)
    assert registry.find(CONFIG_MAP, "default", "one") is not None
    release(registry)
    assert registry.find(CONFIG_MAP, "default", "one") is None


def test_what_goes_takes_no_more_finalizers(registry: Registry) -> None:
    a_map(registry, HOLD)
    registry.delete(CONFIG_MAP, "default", "one")
    with pytest.raises(ApiError, match="no new finalizers can be added") as caught:
        release(registry, HOLD, "example.org/late")
    assert caught.value.code == 422


def test_a_finalizer_in_use_can_go_without_a_deletion(registry: Registry) -> None:
    a_map(registry, HOLD)
    release(registry)
    assert registry.find(CONFIG_MAP, "default", "one") is not None


@pytest.mark.parametrize(
    ("propagation", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")]
)
def test_the_garbage_collector_gets_its_turn(registry: Registry, propagation: str, finalizer: str) -> None:
    a_map(registry, HOLD)
    registry.delete(CONFIG_MAP, "default", "one", propagation=propagation)
    held = registry.get(CONFIG_MAP, "default", "one")
    assert meta(held)["finalizers"] == [HOLD, finalizer]
    assert is_deleted(held)
    release(registry)
    assert registry.find(CONFIG_MAP, "default", "one") is None


def test_a_deletion_is_a_new_generation(registry: Registry) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "image": "nginx"}]},
    }
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    registry.create(DEPLOYMENT, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    registry.delete(DEPLOYMENT, "default", "web", propagation="Foreground")
    assert meta(registry.get(DEPLOYMENT, "default", "web"))["generation"] == 2


def test_preconditions_guard_against_deleting_another(registry: Registry) -> None:
    made = a_map(registry)
    for wrong in ({"uid": "another"}, {"version": "1"}):
        with pytest.raises(ApiError) as caught:
            registry.delete(CONFIG_MAP, "default", "one", **wrong)  # type: ignore[arg-type]
        assert (caught.value.code, caught.value.reason) == (409, "Conflict")
    right = {"uid": meta(made)["uid"], "version": meta(made)["resourceVersion"]}
    registry.delete(CONFIG_MAP, "default", "one", **right)
    assert registry.find(CONFIG_MAP, "default", "one") is None


def test_a_pod_that_runs_gets_its_grace(registry: Registry) -> None:
    a_pod(registry)
    left = delete(registry)
    assert left is not None
    assert meta(left)["deletionGracePeriodSeconds"] == 30
    assert meta(left)["deletionTimestamp"] == timestamp(START + 30)
    assert left["status"]["phase"] == "Running"


@pytest.mark.parametrize(
    ("own", "asked", "seconds"), [(5, None, 5), (5, 60, 60), (60, 5, 5), (5, -1, 1), (5, 1, 1)]
)
def test_whose_grace_counts(registry: Registry, own: int, asked: int | None, seconds: int) -> None:
    a_pod(registry, terminationGracePeriodSeconds=own)
    left = delete(registry, grace_period=asked)
    assert left is not None
    assert meta(left)["deletionGracePeriodSeconds"] == seconds
    assert meta(left)["deletionTimestamp"] == timestamp(START + seconds)


def test_grace_is_only_ever_made_shorter(registry: Registry, clock: Clock) -> None:
    a_pod(registry)
    first = delete(registry, grace_period=60)
    clock.now += 10
    assert delete(registry) is first, "who asks for none leaves it as it is"
    assert delete(registry, grace_period=100) is first
    shorter = delete(registry, grace_period=20)
    assert shorter is not None
    assert meta(shorter)["deletionGracePeriodSeconds"] == 20
    assert meta(shorter)["deletionTimestamp"] == timestamp(START + 20), "it counts from the first"
    assert delete(registry, grace_period=0) is None


@pytest.mark.parametrize(("phase", "node"), [("Pending", ""), ("Succeeded", "n"), ("Failed", "n")])
def test_a_pod_with_nothing_that_runs_goes_at_once(registry: Registry, phase: str, node: str) -> None:
    a_pod(registry, phase, node)
    assert delete(registry) is None


def test_grace_and_finalizers_both_hold_a_pod(registry: Registry) -> None:
    a_pod(registry)
    registry.modify(POD, "default", "web", lambda pod: meta(pod).update(finalizers=[HOLD]))
    assert delete(registry) is not None
    registry.modify(POD, "default", "web", lambda pod: meta(pod).update(finalizers=[]))
    assert registry.find(POD, "default", "web") is not None, "its containers still have their time"
    registry.modify(POD, "default", "web", lambda _: None)
    assert delete(registry, grace_period=0) is None


def test_a_finalizer_outlives_the_containers(registry: Registry) -> None:
    a_pod(registry)
    registry.modify(POD, "default", "web", lambda pod: meta(pod).update(finalizers=[HOLD]))
    delete(registry)
    left = delete(registry, grace_period=0)
    assert left is not None
    assert meta(left)["deletionGracePeriodSeconds"] == 0
    registry.modify(POD, "default", "web", lambda pod: meta(pod).update(finalizers=[]))
    assert registry.find(POD, "default", "web") is None


def test_nothing_new_in_a_namespace_that_goes(registry: Registry) -> None:
    registry.create(NAMESPACE, {"metadata": {"name": "team"}})
    registry.create(SECRET, {"metadata": {"name": "old", "namespace": "team"}})
    registry.delete(NAMESPACE, "", "team")
    namespace = registry.get(NAMESPACE, "", "team")
    assert namespace["status"]["phase"] == "Terminating"
    assert namespace["spec"]["finalizers"] == ["kubernetes"]
    with pytest.raises(ApiError) as caught:
        registry.create(SECRET, {"metadata": {"name": "new", "namespace": "team"}})
    assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
    assert caught.value.details["causes"][0]["reason"] == "NamespaceTerminating"
    old = copy_of(registry.get(SECRET, "team", "old"))
    meta(old)["labels"] = {"a": "b"}
    registry.update(SECRET, old)  # what is there can change, and be deleted
    registry.event(namespace, "Normal", "Going", "events are not worth a failure", "tests")


def test_a_namespace_keeps_its_finalizers_but_by_finalize(registry: Registry) -> None:
    registry.create(NAMESPACE, {"metadata": {"name": "team"}})
    registry.delete(NAMESPACE, "", "team")
    emptied = copy_of(registry.get(NAMESPACE, "", "team"))
    emptied["spec"] = {"finalizers": []}
    registry.update(NAMESPACE, emptied)
    assert registry.get(NAMESPACE, "", "team")["spec"]["finalizers"] == ["kubernetes"]
    registry.update(NAMESPACE, emptied, "finalize")
    assert registry.find(NAMESPACE, "", "team") is None


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_namespaces_that_the_cluster_cannot_do_without(registry: Registry, name: str) -> None:
    with pytest.raises(ApiError, match=f'"{name}" is forbidden: this namespace may not be deleted') as caught:
        registry.delete(NAMESPACE, "", name)
    assert caught.value.code == 403
    assert not is_deleted(registry.get(NAMESPACE, "", name))


def test_a_deletion_is_told_with_its_last_state(registry: Registry) -> None:
    made, begun = a_map(registry), registry.store.log.end
    registry.delete(CONFIG_MAP, "default", "one")
    changes = registry.store.log.read(begun)
    assert changes is not None
    (change,) = changes
    assert (change.type, name_of(change.object), change.previous) == ("DELETED", "one", made)
    assert meta(change.object)["resourceVersion"] == str(change.revision)
