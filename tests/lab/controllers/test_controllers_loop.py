"""The frame: every change is looked at, trouble is tried again, and nothing stops the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import controllers_lab as lab
import pytest

from gpuworkshop.lab.api.kinds import CONFIG_MAP, DEPLOYMENT, POD, Kind
from gpuworkshop.lab.api.objects import name_of
from gpuworkshop.lab.api.problems import conflict
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.deployments import DeploymentController
from gpuworkshop.lab.controllers.endpoints import EndpointsController, EndpointSliceController
from gpuworkshop.lab.controllers.garbage import GarbageCollector
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, own_key
from gpuworkshop.lab.controllers.replicasets import ReplicaSetController
from gpuworkshop.lab.controllers.scheduler import Scheduler


class Recorder(Controller):
    """Notes what it looks at; `work` may do more."""

    name = "recorder"
    watches: Mapping[Kind, Keys] = {CONFIG_MAP: own_key}

    def __init__(self, work: Callable[[Key], float | None] = lambda _: None) -> None:
        self.seen: list[str] = []
        self.looked = asyncio.Event()
        self._work = work

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        self.seen.append(key[1])
        self.looked.set()
        return self._work(key)


def config_map(registry: Registry, name: str, value: str = "") -> None:
    metadata = {"name": name, "namespace": "default"}
    if registry.find(CONFIG_MAP, "default", name) is None:
        registry.create(CONFIG_MAP, {"metadata": metadata, "data": {"value": value}})
    else:
        registry.update(CONFIG_MAP, {"metadata": metadata, "data": {"value": value}})


async def times(recorder: Recorder, count: int) -> None:
    """Wait until it has looked that many times."""
    async with asyncio.timeout(10):
        while len(recorder.seen) < count:
            recorder.looked.clear()
            await recorder.looked.wait()


def test_what_exists_and_what_comes_is_looked_at() -> None:
    registry, recorder = lab.new_registry(), Recorder()
    config_map(registry, "before")

    async def scenario() -> None:
        await times(recorder, 1)
        config_map(registry, "after")
        await times(recorder, 2)

    lab.rehearse(registry, [recorder], scenario)
    assert recorder.seen == ["before", "after"]


def test_changes_of_one_object_at_once_are_looked_at_once() -> None:
    registry, recorder = lab.new_registry(), Recorder()

    async def scenario() -> None:
        for value in range(50):
            config_map(registry, "busy", str(value))
        await times(recorder, 1)
        await lab.settled(registry)

    lab.rehearse(registry, [recorder], scenario)
    assert recorder.seen == ["busy"]


def test_a_look_may_ask_for_the_next_one() -> None:
    registry = lab.new_registry()
    answers = [0.01, 0.0, None]
    recorder = Recorder(lambda _: answers.pop(0))
    config_map(registry, "again")

    async def scenario() -> None:
        await times(recorder, 3)
        await lab.settled(registry)

    lab.rehearse(registry, [recorder], scenario)
    assert recorder.seen == ["again"] * 3


def test_a_conflict_is_tried_again_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    registry = lab.new_registry()
    troubles = [True, True, False]

    def work(key: Key) -> float | None:
        if troubles.pop(0):
            raise conflict(CONFIG_MAP, key[1])
        return None

    recorder = Recorder(work)
    config_map(registry, "contested")

    async def scenario() -> None:
        await times(recorder, 3)

    with caplog.at_level(logging.INFO, logger="gpuworkshop"):
        lab.rehearse(registry, [recorder], scenario)
    assert caplog.records == []


def test_a_fault_is_logged_and_stops_neither_its_controller_nor_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = lab.new_registry()

    def work(key: Key) -> float | None:
        if key[1] == "bad":
            raise ZeroDivisionError
        return None

    faulty, healthy = Recorder(work), Recorder()

    async def scenario() -> None:
        config_map(registry, "bad")
        config_map(registry, "good")
        await times(faulty, 3)
        await times(healthy, 2)

    lab.rehearse(registry, [faulty, healthy], scenario)
    assert faulty.seen[:2] == ["bad", "good"]
    assert faulty.seen[2] == "bad"
    assert {record.message for record in caplog.records} == {"recorder: default/bad"}
    assert "ZeroDivisionError" in caplog.text


def test_a_fault_in_the_choice_of_keys_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    registry, healthy = lab.new_registry(), Recorder()
    faulty = Recorder()
    faulty.watches = {CONFIG_MAP: lambda _registry, obj: obj["nothing"]}

    async def scenario() -> None:
        config_map(registry, "any")
        await times(healthy, 1)

    lab.rehearse(registry, [faulty, healthy], scenario)
    assert faulty.seen == []
    assert "recorder cannot tell what configmaps concerns" in caplog.text


def test_a_change_of_labels_concerns_what_the_object_was_before() -> None:
    registry, recorder = lab.new_registry(), Recorder()
    recorder.watches = {CONFIG_MAP: lambda _registry, obj: [("", obj["data"]["value"])]}
    config_map(registry, "moved", "here")

    async def scenario() -> None:
        await times(recorder, 1)
        config_map(registry, "moved", "there")
        await times(recorder, 3)

    lab.rehearse(registry, [recorder], scenario)
    assert recorder.seen[0] == "here"
    assert set(recorder.seen[1:]) == {"here", "there"}


def test_a_thousand_pods_are_made_and_deleted_in_turns_with_others() -> None:
    registry = lab.new_registry()
    for name in ("one", "two", "three"):
        lab.add_node(registry, name)
    registry.create(DEPLOYMENT, lab.workload("web", replicas=1000))
    controllers = [
        DeploymentController(),
        ReplicaSetController(),
        Scheduler(),
        EndpointsController(),
        EndpointSliceController(),
        GarbageCollector(),
        lab.KubeletStandIn(),
    ]
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def scenario() -> None:
        counting = asyncio.ensure_future(count_turns())
        await lab.until(
            registry,
            lambda: (
                registry.get(DEPLOYMENT, "default", "web").get("status", {}).get("availableReplicas") == 1000
            ),
        )
        per_node: dict[str, int] = {}
        for pod in registry.list(POD):
            node = pod["spec"]["nodeName"]
            per_node[node] = per_node.get(node, 0) + 1
        assert sorted(per_node.values()) == [333, 333, 334]
        assert len({name_of(pod) for pod in registry.list(POD)}) == 1000
        registry.delete(DEPLOYMENT, "default", "web")
        await lab.until(registry, lambda: not registry.store.list(POD.resource))
        counting.cancel()

    lab.rehearse(registry, controllers, scenario)
    assert turns > 1000  # the API server had its turn all along
