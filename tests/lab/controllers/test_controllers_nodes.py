"""Nodes: taints by their state, and pods that must go."""

from __future__ import annotations

from typing import Any

import controllers_lab as lab

from gpuworkshop.lab.api.kinds import NODE, POD
from gpuworkshop.lab.api.objects import Object, is_deleted, timestamp
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.nodes import NodeController, PodGarbageController

KEY = ("", "one")


def taints(registry: Registry) -> list[tuple[str, str]]:
    node = registry.get(NODE, *KEY)
    return [(taint["key"], taint["effect"]) for taint in node["spec"].get("taints") or []]


def look(registry: Registry) -> None:
    NodeController().reconcile(registry, KEY)


def test_a_cordoned_node_is_tainted_until_it_is_uncordoned() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "one")
    look(registry)
    assert taints(registry) == []
    registry.modify(NODE, *KEY, lambda live: live["spec"].update(unschedulable=True))
    look(registry)
    assert taints(registry) == [("node.kubernetes.io/unschedulable", "NoSchedule")]
    registry.modify(NODE, *KEY, lambda live: live["spec"].pop("unschedulable"))
    look(registry)
    assert taints(registry) == []


def test_a_node_that_is_not_ready_is_tainted_beside_its_own_taints() -> None:
    registry = lab.new_registry()
    own = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    lab.add_node(registry, "one", ready=False, taints=[own])
    look(registry)
    assert taints(registry) == [
        ("nvidia.com/gpu", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoSchedule"),
    ]
    before = registry.store.revision
    look(registry)
    assert registry.store.revision == before

    def become_ready(live: Object) -> None:
        live["status"]["conditions"][0]["status"] = "True"

    registry.modify(NODE, *KEY, become_ready, "status")
    look(registry)
    assert taints(registry) == [("nvidia.com/gpu", "NoSchedule")]


def bound(registry: Registry, name: str, **spec: Any) -> Object:
    return registry.create(POD, lab.pod(name, nodeName="one", **spec))


def test_the_pods_of_a_node_that_is_gone_are_deleted() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "one")
    bound(registry, "a")
    registry.create(POD, lab.pod("pending"))

    async def scenario() -> None:
        registry.delete(NODE, *KEY)
        await lab.until(registry, lambda: registry.find(POD, "default", "a") is None)
        await lab.settled(registry)

    lab.rehearse(registry, [PodGarbageController()], scenario)
    assert lab.names(registry.list(POD)) == ["pending"]


def test_a_taint_drives_out_the_intolerant_at_once_and_others_in_time() -> None:
    clock = lab.Clock()
    registry = lab.new_registry(clock=clock)
    added = {"key": "maintenance", "effect": "NoExecute", "timeAdded": timestamp(clock.now)}
    lab.add_node(registry, "one", taints=[added])
    tolerant = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}
    bound(registry, "plain")
    bound(registry, "patient", tolerations=[{**tolerant, "tolerationSeconds": 60}])
    bound(registry, "tolerant", tolerations=[tolerant])

    def staying() -> list[str]:
        return [found["metadata"]["name"] for found in registry.list(POD) if not is_deleted(found)]

    controller = PodGarbageController()
    assert controller.reconcile(registry, KEY) == 60.0
    assert staying() == ["patient", "tolerant"]
    clock.now += 60
    assert controller.reconcile(registry, KEY) is None
    assert staying() == ["tolerant"]
    assert lab.messages(registry, "TaintManagerEviction") == [
        "Marking for deletion Pod default/plain",
        "Marking for deletion Pod default/patient",
    ]
