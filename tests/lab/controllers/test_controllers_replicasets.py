"""ReplicaSets: how many pods, whose, and which go first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import controllers_lab as lab
import pytest

from gpuworkshop.lab.api.kinds import POD, REPLICA_SET, RESOURCE_QUOTA
from gpuworkshop.lab.api.objects import Object, condition, controller_of, labels_of, name_of, uid_of
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.quotas import ADMISSION
from gpuworkshop.lab.controllers.replicasets import ReplicaSetController
from gpuworkshop.lab.controllers.scheduler import Scheduler


def rehearse(registry: Registry, scenario: Callable[[], Awaitable[None]]) -> None:
    lab.rehearse(registry, [ReplicaSetController(), Scheduler(), lab.KubeletStandIn()], scenario)


def started(replicas: int) -> Registry:
    registry = lab.new_registry()
    lab.add_node(registry, "one")
    registry.create(REPLICA_SET, lab.workload("web", replicas=replicas))
    return registry


def web(registry: Registry) -> Object:
    return registry.get(REPLICA_SET, "default", "web")


def ready(registry: Registry) -> int:
    return int((web(registry).get("status") or {}).get("readyReplicas", 0))


def test_it_replaces_a_pod_that_is_deleted() -> None:
    registry = started(2)

    async def scenario() -> None:
        await lab.until(registry, lambda: ready(registry) == 2)
        victim = registry.list(POD)[0]
        registry.delete(POD, "default", name_of(victim))
        await lab.until(
            registry,
            lambda: registry.find(POD, "default", name_of(victim)) is None and ready(registry) == 2,
        )

    rehearse(registry, scenario)
    assert len(lab.messages(registry, "SuccessfulCreate")) == 3
    status = web(registry)["status"]
    assert (status["replicas"], status["fullyLabeledReplicas"], status["observedGeneration"]) == (2, 2, 1)


def test_a_pod_that_has_failed_is_replaced_and_kept() -> None:
    registry = started(1)

    async def scenario() -> None:
        await lab.until(registry, lambda: ready(registry) == 1)
        lab.finish(registry, name_of(registry.list(POD)[0]), "Failed")
        await lab.until(registry, lambda: len(registry.list(POD)) == 2 and ready(registry) == 1)

    rehearse(registry, scenario)


def test_it_adopts_and_releases_by_its_selector() -> None:
    registry = started(1)
    stray = registry.create(POD, lab.pod("stray", {"app": "web"}))

    async def scenario() -> None:
        await lab.until(registry, lambda: ready(registry) == 1)
        (adopted,) = registry.list(POD)
        assert uid_of(adopted) == uid_of(stray)
        assert (controller_of(adopted) or {})["uid"] == uid_of(web(registry))

        def relabel(live: Object) -> None:
            live["metadata"]["labels"] = {"app": "debug"}

        registry.modify(POD, "default", "stray", relabel)
        await lab.until(registry, lambda: len(registry.list(POD)) == 2 and ready(registry) == 1)

    rehearse(registry, scenario)
    assert controller_of(registry.get(POD, "default", "stray")) is None


def test_pods_that_are_not_ready_go_first_then_cheap_then_young_ones() -> None:
    clock = lab.Clock()
    registry = lab.new_registry(clock=clock)
    owner = registry.create(REPLICA_SET, lab.workload("web", replicas=4))
    controller = ReplicaSetController()
    lab.look(controller, registry, owner)
    old, cheap, young, broken = registry.list(POD)
    for pod in (old, cheap, young, broken):
        registry.modify(POD, "default", name_of(pod), lambda live: live["spec"].update(nodeName="one"))
        bound = registry.get(POD, "default", name_of(pod))
        lab.run(registry, bound, ready=pod is not broken)
        clock.now += 10

    def make_cheap(live: Object) -> None:
        live["metadata"]["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": "-5"}

    registry.modify(POD, "default", name_of(cheap), make_cheap)
    left = [name_of(pod) for pod in (broken, cheap, young, old)]
    for replicas in (3, 2, 1):
        owner = lab.modify(registry, REPLICA_SET, "web", replicas=replicas)
        lab.look(controller, registry, owner)
        left.pop(0)
        assert sorted(lab.names(lab.active_pods(registry))) == sorted(left)


def test_what_admission_refuses_is_told_and_tried_again() -> None:
    registry = lab.new_registry(ADMISSION)
    metadata = {"name": "few", "namespace": "default"}
    registry.create(RESOURCE_QUOTA, {"metadata": metadata, "spec": {"hard": {"pods": "1"}}})
    owner = registry.create(REPLICA_SET, lab.workload("web", replicas=2))
    with pytest.raises(ApiError, match="exceeded quota: few"):
        lab.look(ReplicaSetController(), registry, owner)
    (told,) = lab.messages(registry, "FailedCreate")
    assert told.startswith('Error creating: pods "web-')
    assert told.endswith(
        "is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"
    )
    failure = condition(web(registry), "ReplicaFailure") or {}
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    assert web(registry)["status"]["replicas"] == 1
    registry.delete(RESOURCE_QUOTA, "default", "few")
    lab.look(ReplicaSetController(), registry, web(registry))
    assert condition(web(registry), "ReplicaFailure") is None
    assert len(registry.list(POD)) == 2


def test_a_refusal_that_lasts_is_tried_again_ever_more_seldom() -> None:
    registry = lab.new_registry(ADMISSION)
    metadata = {"name": "none", "namespace": "default"}
    registry.create(RESOURCE_QUOTA, {"metadata": metadata, "spec": {"hard": {"pods": "0"}}})
    registry.create(REPLICA_SET, lab.workload("web", replicas=1))

    async def scenario() -> None:
        await lab.until(registry, lambda: lab.messages(registry, "FailedCreate"))
        await lab.settled(registry)  # never, if each failure brought the next

    rehearse(registry, scenario)
    (condition_message,) = {found["message"] for found in web(registry)["status"]["conditions"]}
    assert lab.messages(registry, "FailedCreate")[0] == f"Error creating: {condition_message}"


def test_the_pods_carry_the_templates_labels_annotations_and_owner() -> None:
    registry = lab.new_registry()
    body = lab.workload("web", replicas=1)
    body["spec"]["template"]["metadata"]["annotations"] = {"note": "kept"}
    owner = registry.create(REPLICA_SET, body)
    lab.look(ReplicaSetController(), registry, owner)
    (pod,) = registry.list(POD)
    assert labels_of(pod) == {"app": "web"}
    assert pod["metadata"]["annotations"] == {"note": "kept"}
    (reference,) = pod["metadata"]["ownerReferences"]
    assert reference == {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web",
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }
