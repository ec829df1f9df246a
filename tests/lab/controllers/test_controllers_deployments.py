"""Deployments: what kubectl's rollout commands count on."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import controllers_lab as lab

from gpuworkshop.lab.api.kinds import DEPLOYMENT, POD, REPLICA_SET
from gpuworkshop.lab.api.objects import Object, condition, copy_of, is_deleted, labels_of, name_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.deployments import DeploymentController
from gpuworkshop.lab.controllers.replicasets import ReplicaSetController
from gpuworkshop.lab.controllers.scheduler import Scheduler

NEXT_IMAGE = "registry.k8s.io/pause:3.10"


def rehearse(registry: Registry, scenario: Callable[[], Awaitable[None]]) -> None:
    controllers = [DeploymentController(), ReplicaSetController(), Scheduler(), lab.KubeletStandIn()]
    lab.rehearse(registry, controllers, scenario)


def started(**spec: Any) -> Registry:
    registry = lab.new_registry()
    lab.add_node(registry, "one")
    registry.create(
        DEPLOYMENT, lab.workload("web", **{"replicas": 3, "progressDeadlineSeconds": 600, **spec})
    )
    return registry


def web(registry: Registry) -> Object:
    return registry.get(DEPLOYMENT, "default", "web")


def progress(registry: Registry) -> tuple[str, str]:
    found = condition(web(registry), "Progressing") or {}
    return found.get("reason", ""), found.get("message", "")


def is_rolled_out(registry: Registry) -> bool:
    """As `kubectl rollout status` sees it."""
    deployment = web(registry)
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    counts = [status.get(key, 0) for key in ("updatedReplicas", "replicas", "availableReplicas")]
    return status.get("observedGeneration") == deployment["metadata"]["generation"] and counts == [wanted] * 3


def set_image(registry: Registry, image: str) -> None:
    def change(live: Object) -> None:
        live["spec"]["template"]["spec"]["containers"][0]["image"] = image

    registry.modify(DEPLOYMENT, "default", "web", change)


def sizes(registry: Registry) -> dict[str, int]:
    """The replicas that each ReplicaSet wants, by image."""
    return {
        found["spec"]["template"]["spec"]["containers"][0]["image"]: found["spec"]["replicas"]
        for found in registry.list(REPLICA_SET)
    }


def is_at(registry: Registry, image: str) -> bool:
    return sizes(registry).get(image) == 1 and is_rolled_out(registry)


def revisions(registry: Registry) -> list[str]:
    notes = [found["metadata"]["annotations"] for found in registry.list(REPLICA_SET)]
    return sorted(note["deployment.kubernetes.io/revision"] for note in notes)


def test_a_new_deployment_becomes_available() -> None:
    registry = started()

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        await lab.until(registry, lambda: progress(registry)[0] == "NewReplicaSetAvailable")

    rehearse(registry, scenario)
    (replica_set,) = registry.list(REPLICA_SET)
    digest = labels_of(replica_set)["pod-template-hash"]
    assert re.fullmatch(r"[bcdf4-9]{1,10}", digest)
    assert name_of(replica_set) == f"web-{digest}"
    assert replica_set["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": digest}
    pods = registry.list(POD)
    assert len(pods) == 3
    assert all(
        re.fullmatch(rf"web-{digest}-[bcdfghjklmnpqrstvwxz2456789]{{5}}", name_of(pod)) for pod in pods
    )
    assert {labels_of(pod)["pod-template-hash"] for pod in pods} == {digest}
    assert lab.messages(registry, "ScalingReplicaSet") == [f"Scaled up replica set web-{digest} from 0 to 3"]
    assert len(lab.messages(registry, "SuccessfulCreate")) == 3


def test_its_status_says_what_the_real_one_does() -> None:
    registry = started()

    async def scenario() -> None:
        await lab.until(registry, lambda: progress(registry)[0] == "NewReplicaSetAvailable")

    rehearse(registry, scenario)
    deployment = web(registry)
    available = condition(deployment, "Available") or {}
    assert (available["status"], available["reason"]) == ("True", "MinimumReplicasAvailable")
    assert available["message"] == "Deployment has minimum availability."
    (replica_set,) = registry.list(REPLICA_SET)
    assert progress(registry)[1] == f'ReplicaSet "{name_of(replica_set)}" has successfully progressed.'
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert "unavailableReplicas" not in deployment["status"]


def test_a_rolling_update_keeps_within_surge_and_unavailable() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    registry = started(strategy=rolling)
    seen: set[tuple[int, int]] = set()

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        set_image(registry, NEXT_IMAGE)

        def done() -> bool:
            alive = lab.active_pods(registry)
            ready = [pod for pod in alive if (condition(pod, "Ready") or {}).get("status") == "True"]
            seen.add((len(alive), len(ready)))
            return sizes(registry).get(NEXT_IMAGE) == 3 and is_rolled_out(registry)

        await lab.until(registry, done)

    rehearse(registry, scenario)
    assert max(alive for alive, _ in seen) == 4
    assert min(ready for _, ready in seen) >= 3
    assert sorted(sizes(registry).values()) == [0, 3]
    assert revisions(registry) == ["1", "2"]


def test_undo_makes_the_old_replica_set_the_newest_revision() -> None:
    registry = started()

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        before = copy_of(web(registry)["spec"]["template"])
        set_image(registry, NEXT_IMAGE)
        await lab.until(registry, lambda: sizes(registry).get(NEXT_IMAGE) == 3 and is_rolled_out(registry))
        lab.modify(registry, DEPLOYMENT, "web", template=before)  # what `kubectl rollout undo` patches
        await lab.until(registry, lambda: sizes(registry)[NEXT_IMAGE] == 0 and is_rolled_out(registry))

    rehearse(registry, scenario)
    assert len(registry.list(REPLICA_SET)) == 2
    assert revisions(registry) == ["2", "3"]
    assert web(registry)["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


def test_recreate_waits_until_the_old_pods_are_gone() -> None:
    registry = started(strategy={"type": "Recreate"})
    together: list[set[str]] = []

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        set_image(registry, NEXT_IMAGE)

        def done() -> bool:
            together.append({labels_of(pod)["pod-template-hash"] for pod in registry.list(POD)})
            return sizes(registry).get(NEXT_IMAGE) == 3 and is_rolled_out(registry)

        await lab.until(registry, done)

    rehearse(registry, scenario)
    assert max(map(len, together)) == 1
    assert not any(is_deleted(pod) for pod in registry.list(POD))


def test_scaling_is_followed_and_told() -> None:
    registry = started()

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        lab.modify(registry, DEPLOYMENT, "web", replicas=5)
        await lab.until(registry, lambda: is_rolled_out(registry))
        lab.modify(registry, DEPLOYMENT, "web", replicas=0)
        await lab.until(registry, lambda: is_rolled_out(registry) and not registry.list(POD))
        lab.modify(registry, DEPLOYMENT, "web", replicas=1)
        await lab.until(registry, lambda: is_rolled_out(registry))

    rehearse(registry, scenario)
    (replica_set,) = registry.list(REPLICA_SET)
    changes = ["up", "0 to 3"], ["up", "3 to 5"], ["down", "5 to 0"], ["up", "0 to 1"]
    told = [f"Scaled {way} replica set {name_of(replica_set)} from {step}" for way, step in changes]
    assert lab.messages(registry, "ScalingReplicaSet") == told
    assert replica_set["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"] == "1"


def test_a_paused_deployment_does_not_roll_but_scales() -> None:
    registry = started()

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        lab.modify(registry, DEPLOYMENT, "web", paused=True)
        set_image(registry, NEXT_IMAGE)
        lab.modify(registry, DEPLOYMENT, "web", replicas=4)
        await lab.until(registry, lambda: len(lab.active_pods(registry)) == 4)
        await lab.until(registry, lambda: progress(registry)[0] == "DeploymentPaused")
        assert NEXT_IMAGE not in sizes(registry)
        lab.modify(registry, DEPLOYMENT, "web", paused=False)
        await lab.until(registry, lambda: sizes(registry).get(NEXT_IMAGE) == 4 and is_rolled_out(registry))

    rehearse(registry, scenario)
    assert progress(registry)[0] == "NewReplicaSetAvailable"


def test_a_rollout_that_does_not_progress_is_given_up_after_its_deadline() -> None:
    clock = lab.Clock()
    registry = lab.new_registry(clock=clock)
    body = lab.workload("web", replicas=1, progressDeadlineSeconds=60)
    deployment = registry.create(DEPLOYMENT, body)
    controller = DeploymentController()
    left = lab.look(controller, registry, deployment)
    assert left is not None
    assert 0 < left <= 60
    assert progress(registry)[0] in ("NewReplicaSetCreated", "ReplicaSetUpdated")
    clock.now += 61
    lab.look(controller, registry, deployment)
    found = condition(web(registry), "Progressing") or {}
    assert (found["status"], found["reason"]) == ("False", "ProgressDeadlineExceeded")
    assert "has timed out progressing." in found["message"]


def test_min_ready_seconds_delay_availability() -> None:
    clock = lab.Clock()
    registry = lab.new_registry(clock=clock)
    deployment = registry.create(DEPLOYMENT, lab.workload("web", replicas=1, minReadySeconds=30))
    controllers = [DeploymentController(), ReplicaSetController()]
    lab.look(controllers[0], registry, deployment)
    (replica_set,) = registry.list(REPLICA_SET)
    lab.look(controllers[1], registry, replica_set)
    (pod,) = registry.list(POD)
    lab.run(registry, pod)
    assert lab.look(controllers[1], registry, replica_set) == 30.0
    assert "availableReplicas" not in registry.list(REPLICA_SET)[0]["status"]
    clock.now += 30
    assert lab.look(controllers[1], registry, replica_set) is None
    assert registry.list(REPLICA_SET)[0]["status"]["availableReplicas"] == 1


def test_old_replica_sets_beyond_the_history_are_deleted() -> None:
    registry = started(replicas=1, revisionHistoryLimit=1)

    async def scenario() -> None:
        for number in range(4):
            image = f"registry.k8s.io/pause:{number}"
            set_image(registry, image)
            await lab.until(registry, partial(is_at, registry, image))
        await lab.until(registry, lambda: len(registry.list(REPLICA_SET)) == 2)

    rehearse(registry, scenario)
    assert (
        revisions(registry)[-1]
        == web(registry)["metadata"]["annotations"]["deployment.kubernetes.io/revision"]
    )


def test_a_deployment_adopts_a_replica_set_of_its_selector() -> None:
    registry = started(replicas=2)

    async def first() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))

    rehearse(registry, first)
    registry.delete(DEPLOYMENT, "default", "web")
    (left,) = registry.list(REPLICA_SET)

    def free(live: Object) -> None:
        live["metadata"].pop("ownerReferences")

    registry.modify(REPLICA_SET, "default", name_of(left), free)
    registry.create(DEPLOYMENT, lab.workload("web", replicas=2))
    before = {name_of(pod) for pod in registry.list(POD)}
    rehearse(registry, first)
    (adopted,) = registry.list(REPLICA_SET)
    assert adopted["metadata"]["ownerReferences"][0]["uid"] == web(registry)["metadata"]["uid"]
    assert {name_of(pod) for pod in registry.list(POD)} == before


def test_a_name_that_is_taken_leads_to_another_hash() -> None:
    registry = lab.new_registry()
    deployment = registry.create(DEPLOYMENT, lab.workload("web", replicas=1))
    controller = DeploymentController()
    lab.look(controller, registry, deployment)
    (mine,) = registry.list(REPLICA_SET)
    registry.delete(REPLICA_SET, "default", name_of(mine))
    stranger = lab.workload("other", replicas=0)
    stranger["metadata"]["name"] = name_of(mine)
    registry.create(REPLICA_SET, stranger)
    lab.look(controller, registry, web(registry))
    assert web(registry)["status"]["collisionCount"] == 1
    lab.look(controller, registry, web(registry))
    assert len(registry.list(REPLICA_SET)) == 2
