"""StatefulSets: names, order, updates from the top down."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import controllers_lab as lab

from gpuworkshop.lab.api.kinds import CONTROLLER_REVISION, POD, STATEFUL_SET
from gpuworkshop.lab.api.objects import Object, condition, labels_of, name_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.scheduler import Scheduler
from gpuworkshop.lab.controllers.statefulsets import BURST, StatefulSetController

NEXT_IMAGE = "registry.k8s.io/pause:3.10"


def rehearse(registry: Registry, scenario: Callable[[], Awaitable[None]]) -> None:
    lab.rehearse(registry, [StatefulSetController(), Scheduler(), lab.KubeletStandIn()], scenario)


def started(**spec: Any) -> Registry:
    registry = lab.new_registry()
    lab.add_node(registry, "one")
    body = lab.workload("db", **{"replicas": 3, "serviceName": "db", **spec})
    registry.create(STATEFUL_SET, body)
    return registry


def db(registry: Registry) -> Object:
    return registry.get(STATEFUL_SET, "default", "db")


def status(registry: Registry) -> dict[str, Any]:
    found: dict[str, Any] = db(registry).get("status") or {}
    return found


def is_rolled_out(registry: Registry) -> bool:
    """As `kubectl rollout status` sees it."""
    found, wanted = status(registry), db(registry)["spec"]["replicas"]
    return (
        found.get("observedGeneration") == db(registry)["metadata"]["generation"]
        and found.get("readyReplicas", 0) == wanted == found.get("replicas")
        and found.get("updateRevision") == found.get("currentRevision")
    )


def set_image(registry: Registry, image: str) -> None:
    def change(live: Object) -> None:
        live["spec"]["template"]["spec"]["containers"][0]["image"] = image

    registry.modify(STATEFUL_SET, "default", "db", change)


def images(registry: Registry) -> list[str]:
    """The image of each pod, by ordinal."""
    return [found["spec"]["containers"][0]["image"] for found in registry.list(POD)]


def test_pods_come_in_order_each_when_the_last_is_ready() -> None:
    registry = started()
    steps: list[list[bool]] = []

    async def scenario() -> None:
        def done() -> bool:
            found = [(condition(pod, "Ready") or {}).get("status") == "True" for pod in registry.list(POD)]
            steps.append(found)
            return is_rolled_out(registry)

        await lab.until(registry, done)

    rehearse(registry, scenario)
    assert lab.names(registry.list(POD)) == ["db-0", "db-1", "db-2"]
    assert all(all(found[:-1]) for found in steps)  # only the last one may not be ready


def test_a_pod_knows_its_name_and_ordinal() -> None:
    registry = started(replicas=2)

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))

    rehearse(registry, scenario)
    pod = registry.get(POD, "default", "db-1")
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-1", "db")
    labels = labels_of(pod)
    assert labels["statefulset.kubernetes.io/pod-name"] == "db-1"
    assert labels["apps.kubernetes.io/pod-index"] == "1"
    assert labels["controller-revision-hash"] == status(registry)["currentRevision"]


def test_a_broken_pod_stops_those_after_it_unless_they_are_parallel() -> None:
    for policy, expected in (("OrderedReady", 1), ("Parallel", 3)):
        registry = started(podManagementPolicy=policy)

        def break_it(live: Object) -> None:
            live["spec"]["template"]["metadata"]["labels"]["broken"] = "yes"

        registry.modify(STATEFUL_SET, "default", "db", break_it)

        async def scenario(registry: Registry = registry, expected: int = expected) -> None:
            def running() -> int:
                return sum("podIP" in (found.get("status") or {}) for found in registry.list(POD))

            await lab.until(registry, lambda: running() == expected)
            await lab.settled(registry)
            assert len(registry.list(POD)) == expected

        rehearse(registry, scenario)


def test_scaling_down_takes_the_highest_first_one_at_a_time() -> None:
    registry = started()
    seen: list[list[str]] = []

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        lab.modify(registry, STATEFUL_SET, "db", replicas=1)

        def done() -> bool:
            seen.append(lab.names(lab.active_pods(registry)))
            return is_rolled_out(registry)

        await lab.until(registry, done)

    rehearse(registry, scenario)
    assert seen[-1] == ["db-0"]
    assert all(found == ["db-0", "db-1", "db-2"][: len(found)] for found in seen)


def test_an_update_goes_from_the_highest_down() -> None:
    registry = started()
    seen: list[list[bool]] = []

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        set_image(registry, NEXT_IMAGE)

        def done() -> bool:
            found = [image == NEXT_IMAGE for image in images(registry)]
            seen.append(found if len(found) == 3 else [])
            return is_rolled_out(registry)

        await lab.until(registry, done)

    rehearse(registry, scenario)
    assert seen[-1] == [True] * 3
    assert all(found == sorted(found) for found in seen)
    assert len(registry.list(CONTROLLER_REVISION)) == 2


def test_a_partition_holds_the_lower_ordinals_back() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    registry = started(updateStrategy=strategy)

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        set_image(registry, NEXT_IMAGE)
        await lab.until(registry, lambda: status(registry).get("updatedReplicas") == 1)
        await lab.until(registry, lambda: status(registry).get("readyReplicas") == 3)
        registry.delete(POD, "default", "db-0")
        await lab.until(registry, lambda: status(registry).get("readyReplicas") == 2)
        await lab.until(registry, lambda: status(registry).get("readyReplicas") == 3)

    rehearse(registry, scenario)
    old = "registry.k8s.io/pause:3.9"
    assert images(registry) == [old, old, NEXT_IMAGE]
    assert status(registry)["currentRevision"] != status(registry)["updateRevision"]


def test_on_delete_keeps_pods_as_they_are() -> None:
    registry = started(replicas=1, updateStrategy={"type": "OnDelete"})

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        set_image(registry, NEXT_IMAGE)
        await lab.until(registry, lambda: status(registry)["observedGeneration"] == 2)
        await lab.settled(registry)
        assert NEXT_IMAGE not in images(registry)

    rehearse(registry, scenario)


def test_claims_become_empty_folders_and_a_warning() -> None:
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    registry = started(replicas=2, volumeClaimTemplates=[claim])

    async def scenario() -> None:
        await lab.until(registry, lambda: len(registry.list(POD)) == 2)

    rehearse(registry, scenario)
    assert {"name": "data", "emptyDir": {}} in registry.list(POD)[0]["spec"]["volumes"]
    assert lab.messages(registry, "VolumeClaimsNotServed") == [
        "the lab has no storage: data is an empty folder that is lost with its pod"
    ]


def test_a_failed_pod_comes_back_under_its_name() -> None:
    registry = started(replicas=1)

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        before = registry.get(POD, "default", "db-0")["metadata"]["uid"]
        lab.finish(registry, "db-0", "Failed")
        await lab.until(
            registry,
            lambda: (
                [found["metadata"]["uid"] for found in registry.list(POD)] not in ([], [before])
                and is_rolled_out(registry)
            ),
        )

    rehearse(registry, scenario)


def test_a_broken_update_is_replaced_by_the_next_one() -> None:
    registry = started(replicas=2)

    def relabel(broken: bool) -> Callable[[Object], None]:
        def change(live: Object) -> None:
            labels = live["spec"]["template"]["metadata"]["labels"]
            labels.pop("broken", None)
            labels |= {"broken": "yes"} if broken else {"fixed": "yes"}

        return change

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        registry.modify(STATEFUL_SET, "default", "db", relabel(True))
        await lab.until(registry, lambda: any("broken" in labels_of(pod) for pod in registry.list(POD)))
        registry.modify(STATEFUL_SET, "default", "db", relabel(False))
        await lab.until(registry, lambda: is_rolled_out(registry))

    rehearse(registry, scenario)
    assert [labels_of(pod).get("fixed") for pod in registry.list(POD)] == ["yes", "yes"]
    assert name_of(registry.list(POD)[0]) == "db-0"


def test_the_pods_of_a_large_set_come_in_bursts() -> None:
    registry = started(replicas=2**31 - 1, podManagementPolicy="Parallel")
    controller = StatefulSetController()
    for looks in (1, 2):
        assert lab.look(controller, registry, db(registry)) == 0.0
        assert len(registry.list(POD)) == looks * BURST
    registry.modify(STATEFUL_SET, "default", "db", lambda live: live["spec"].update(replicas=BURST + 1))
    assert lab.look(controller, registry, db(registry)) is None
    assert len(lab.active_pods(registry)) == BURST + 1
