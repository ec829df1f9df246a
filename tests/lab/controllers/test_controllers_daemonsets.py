"""DaemonSets: on which nodes, and how an update passes over them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import controllers_lab as lab
import pytest

from gpuworkshop.lab.api.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD
from gpuworkshop.lab.api.objects import Object, is_deleted, labels_of, name_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.daemonsets import DaemonSetController
from gpuworkshop.lab.controllers.nodes import NodeController, PodGarbageController
from gpuworkshop.lab.controllers.scheduler import Scheduler

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def rehearse(registry: Registry, scenario: Callable[[], Awaitable[None]]) -> None:
    controllers = [
        DaemonSetController(),
        Scheduler(),
        NodeController(),
        PodGarbageController(),
        lab.KubeletStandIn(),
    ]
    lab.rehearse(registry, controllers, scenario)


def agent(registry: Registry) -> Object:
    return registry.get(DAEMON_SET, "default", "agent")


def status(registry: Registry, field: str) -> int:
    return int((agent(registry).get("status") or {}).get(field, 0))


def where(registry: Registry) -> list[str]:
    return sorted(found["spec"].get("nodeName", "") for found in lab.active_pods(registry, app="agent"))


def is_rolled_out(registry: Registry) -> bool:
    """As `kubectl rollout status` sees it."""
    found = agent(registry)
    wanted = status(registry, "desiredNumberScheduled")
    counts = (status(registry, field) for field in ("updatedNumberScheduled", "numberAvailable"))
    return status(registry, "observedGeneration") == found["metadata"]["generation"] and set(counts) == {
        wanted
    }


def started(*nodes: str, **spec: Any) -> Registry:
    registry = lab.new_registry()
    for node in nodes:
        lab.add_node(registry, node)
    registry.create(DAEMON_SET, lab.workload("agent", **spec))
    return registry


def set_image(registry: Registry, image: str) -> None:
    def change(live: Object) -> None:
        live["spec"]["template"]["spec"]["containers"][0]["image"] = image

    registry.modify(DAEMON_SET, "default", "agent", change)


def test_every_node_gets_one_also_those_that_come_later() -> None:
    registry = started("one", "two")

    async def scenario() -> None:
        await lab.until(registry, lambda: status(registry, "numberAvailable") == 2)
        lab.add_node(registry, "three")
        await lab.until(registry, lambda: status(registry, "numberAvailable") == 3)
        registry.delete(NODE, "", "one")
        await lab.until(
            registry,
            lambda: status(registry, "desiredNumberScheduled") == 2 and len(registry.list(POD)) == 2,
        )

    rehearse(registry, scenario)
    assert where(registry) == ["three", "two"]
    assert "numberUnavailable" not in agent(registry)["status"]


def test_labels_and_taints_keep_it_off_a_node() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "plain")
    lab.add_node(registry, "gpu", labels={"gpu": "yes"})
    lab.add_node(registry, "tainted", labels={"gpu": "yes"}, taints=[GPU_TAINT])
    body = lab.workload("agent")
    body["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "yes"}
    registry.create(DAEMON_SET, body)

    async def scenario() -> None:
        await lab.until(registry, lambda: where(registry) == ["gpu"] and is_rolled_out(registry))
        template = agent(registry)["spec"]["template"]
        tolerant = {**template["spec"], "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}
        lab.modify(registry, DAEMON_SET, "agent", template={**template, "spec": tolerant})
        await lab.until(registry, lambda: len(registry.list(POD)) == 2 and is_rolled_out(registry))

    rehearse(registry, scenario)
    assert where(registry) == ["gpu", "tainted"]


def test_a_node_that_loses_its_label_loses_its_pod() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "one", labels={"gpu": "yes"})
    body = lab.workload("agent")
    body["spec"]["template"]["spec"]["nodeSelector"] = {"gpu": "yes"}
    registry.create(DAEMON_SET, body)

    def unlabel(live: Object) -> None:
        del live["metadata"]["labels"]["gpu"]

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        registry.modify(NODE, "", "one", unlabel)
        await lab.until(registry, lambda: not registry.list(POD))
        await lab.until(registry, lambda: not status(registry, "desiredNumberScheduled"))

    rehearse(registry, scenario)


def test_a_cordoned_node_keeps_its_daemons() -> None:
    registry = started("one")

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        (before,) = registry.list(POD)
        registry.modify(NODE, "", "one", lambda live: live["spec"].update(unschedulable=True))
        await lab.until(registry, lambda: registry.get(NODE, "", "one")["spec"].get("taints"))
        registry.delete(POD, "default", name_of(before))
        await lab.until(
            registry, lambda: before not in registry.list(POD) and status(registry, "numberAvailable") == 1
        )

    rehearse(registry, scenario)
    keys = {each["key"] for each in registry.list(POD)[0]["spec"]["tolerations"]}
    assert "node.kubernetes.io/unschedulable" in keys


def test_without_room_its_pod_waits_for_that_very_node() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "full", cpu="1")
    lab.add_node(registry, "free", cpu="4")
    body = lab.workload("agent")
    body["spec"]["template"]["spec"]["containers"] = [lab.container(cpu="2")]
    registry.create(DAEMON_SET, body)

    async def scenario() -> None:
        await lab.until(registry, lambda: status(registry, "numberAvailable") == 1)
        await lab.until(registry, lambda: lab.messages(registry, "FailedScheduling"))

    rehearse(registry, scenario)
    assert lab.messages(registry, "FailedScheduling") == [
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
        "no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    ]
    assert status(registry, "desiredNumberScheduled") == 2
    assert status(registry, "numberUnavailable") == 1


@pytest.mark.parametrize("limit", [1, "50%"])
def test_an_update_goes_node_by_node(limit: int | str) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": limit}}
    registry = started("a", "b", "c", "d", updateStrategy=strategy)
    most = 1 if limit == 1 else 2
    missing: list[int] = []

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        set_image(registry, "registry.k8s.io/pause:3.10")

        def done() -> bool:
            ready = [
                found
                for found in registry.list(POD)
                if not is_deleted(found) and "Ready" in str(found.get("status"))
            ]
            missing.append(4 - len(ready))
            return is_rolled_out(registry)

        await lab.until(registry, done)

    rehearse(registry, scenario)
    assert 1 <= max(missing) <= most
    assert {found["spec"]["containers"][0]["image"] for found in registry.list(POD)} == {
        "registry.k8s.io/pause:3.10"
    }


def test_on_delete_waits_for_the_deletion() -> None:
    registry = started("one", updateStrategy={"type": "OnDelete"})

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        set_image(registry, "registry.k8s.io/pause:3.10")
        await lab.until(registry, lambda: status(registry, "observedGeneration") == 2)
        (old,) = registry.list(POD)
        assert status(registry, "updatedNumberScheduled") == 0
        registry.delete(POD, "default", name_of(old))
        await lab.until(registry, lambda: is_rolled_out(registry))

    rehearse(registry, scenario)


def test_each_template_is_a_revision_to_go_back_to() -> None:
    registry = started("one")

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        first = agent(registry)["spec"]["template"]
        set_image(registry, "registry.k8s.io/pause:3.10")
        await lab.until(registry, lambda: is_rolled_out(registry))
        lab.modify(registry, DAEMON_SET, "agent", template=first)
        await lab.until(registry, lambda: is_rolled_out(registry))

    rehearse(registry, scenario)
    revisions = registry.list(CONTROLLER_REVISION)
    assert sorted(found["revision"] for found in revisions) == [2, 3]
    assert all(found["data"]["spec"]["template"]["$patch"] == "replace" for found in revisions)
    assert all(labels_of(found)["app"] == "agent" for found in revisions)
    newest = max(revisions, key=lambda found: int(found["revision"]))
    digest = labels_of(registry.list(POD)[0])["controller-revision-hash"]
    assert name_of(newest) == f"agent-{digest}"


def test_a_pod_that_fails_is_told_and_replaced() -> None:
    registry = started("one")

    async def scenario() -> None:
        await lab.until(registry, lambda: is_rolled_out(registry))
        (old,) = registry.list(POD)
        lab.finish(registry, name_of(old), "Failed")
        await lab.until(
            registry, lambda: name_of(old) not in lab.names(registry.list(POD)) and is_rolled_out(registry)
        )

    rehearse(registry, scenario)
    (told,) = lab.messages(registry, "FailedDaemonPod")
    assert told.startswith("Found failed daemon pod default/agent-")
    assert told.endswith("on node one, will try to kill it")
