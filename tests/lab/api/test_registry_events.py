"""Events: counted when they repeat, combined and kept few when there would be a flood, forgotten in time."""

from __future__ import annotations

import pytest
from access_lab import Clock
from own_api_server import new_registry

from gpuworkshop.lab.api.event_limits import BURST, COMBINED, SIMILAR
from gpuworkshop.lab.api.kinds import CONFIG_MAP, EVENT, NODE
from gpuworkshop.lab.api.objects import Object, meta, timestamp
from gpuworkshop.lab.api.registry import Registry


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(clock: Clock) -> Registry:
    return new_registry(clock)


def about(registry: Registry, name: str = "one") -> Object:
    return registry.create(CONFIG_MAP, {"metadata": {"name": name, "namespace": "default"}})


def tell(registry: Registry, obj: Object, message: str = "it is", reason: str = "Seen") -> None:
    registry.event(obj, "Normal", reason, message, "tests")


def told(registry: Registry) -> list[tuple[str, int]]:
    """The messages with their counts, in the order in which they came."""
    return [(event["message"], event["count"]) for event in registry.list(EVENT)]


def test_an_event_says_about_what_by_whom_and_when(registry: Registry, clock: Clock) -> None:
    obj = about(registry)
    registry.event(obj, "Warning", "Failed", "it broke", "kubelet", "node-1")
    (event,) = registry.list(EVENT)
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "one",
        "namespace": "default",
        "uid": meta(obj)["uid"],
        "resourceVersion": meta(obj)["resourceVersion"],
    }
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Failed", "it broke")
    assert event["source"] == {"component": "kubelet", "host": "node-1"}
    assert event["firstTimestamp"] == event["lastTimestamp"] == timestamp(clock.now)
    assert meta(event)["name"].startswith("one.")


def test_what_belongs_to_no_namespace_is_told_in_the_default_one(registry: Registry) -> None:
    tell(registry, registry.create(NODE, {"metadata": {"name": "n"}}))
    (event,) = registry.list(EVENT, "default")
    assert event["involvedObject"]["kind"] == "Node"


def test_a_repeated_event_is_counted(registry: Registry, clock: Clock) -> None:
    obj = about(registry)
    tell(registry, obj)
    first = timestamp(clock.now)
    clock.now += 5
    tell(registry, obj)
    (event,) = registry.list(EVENT)
    assert (event["count"], event["firstTimestamp"]) == (2, first)
    assert event["lastTimestamp"] == timestamp(clock.now)
    tell(registry, obj, "it is otherwise")
    tell(registry, obj, reason="Heard")
    assert told(registry) == [("it is", 2), ("it is otherwise", 1), ("it is", 1)]


def test_one_that_was_deleted_meanwhile_is_told_anew(registry: Registry) -> None:
    obj = about(registry)
    tell(registry, obj)
    registry.delete(EVENT, "default", meta(registry.list(EVENT)[0])["name"])
    tell(registry, obj)
    assert told(registry) == [("it is", 1)]


def test_a_thousand_pods_of_a_replica_set_are_told_in_ten_events(registry: Registry) -> None:
    obj = about(registry)
    for number in range(1000):
        tell(registry, obj, f"Created pod: web-{number}")
    messages = told(registry)
    alone = [(f"Created pod: web-{number}", 1) for number in range(SIMILAR - 1)]
    assert messages[:-1] == alone
    assert messages[-1] == (f"{COMBINED}Created pod: web-{BURST - 1}", BURST - len(alone))


def test_each_object_and_each_source_has_a_burst_of_its_own(registry: Registry) -> None:
    one, two = about(registry, "one"), about(registry, "two")
    for _ in range(40):
        tell(registry, one)
        tell(registry, two)
        registry.event(one, "Normal", "Seen", "it is", "others")
    assert told(registry) == [("it is", BURST)] * 3


def test_after_a_burst_one_more_every_five_minutes(registry: Registry, clock: Clock) -> None:
    obj = about(registry)
    for _ in range(BURST + 5):
        tell(registry, obj)
    clock.now += 299
    tell(registry, obj)
    assert told(registry) == [("it is", BURST)]
    clock.now += 1
    tell(registry, obj)
    tell(registry, obj)
    assert told(registry) == [("it is", BURST + 1)]


def test_messages_that_come_slowly_are_not_combined(registry: Registry, clock: Clock) -> None:
    obj = about(registry)
    for number in range(SIMILAR + 2):
        tell(registry, obj, f"number {number}")
        clock.now += 601
    assert not any(message.startswith(COMBINED) for message, _ in told(registry))


def test_the_same_message_again_and_again_is_not_combined(registry: Registry) -> None:
    obj = about(registry)
    for _ in range(SIMILAR * 2):
        tell(registry, obj)
    assert told(registry) == [("it is", SIMILAR * 2)]


def test_events_are_forgotten_an_hour_after_they_came_last(registry: Registry, clock: Clock) -> None:
    old, again = about(registry, "old"), about(registry, "again")
    tell(registry, old, "old")
    tell(registry, again, "again")
    clock.now += 3000
    tell(registry, again, "again")
    assert sorted(told(registry)) == [("again", 2), ("old", 1)]
    clock.now += 900
    tell(registry, again, "new")
    assert sorted(told(registry)) == [("again", 2), ("new", 1)]
    tell(registry, old, "old")
    assert ("old", 1) in told(registry), "what was forgotten counts from one"


def test_limits_are_forgotten_too(registry: Registry, clock: Clock) -> None:
    obj = about(registry)
    for number in range(100):
        tell(registry, obj, str(number))
    clock.now += 300 * (BURST + 1)
    tell(registry, about(registry, "other"))
    recorder = registry._recorder
    assert len(recorder._limits._buckets) == 1
    assert len(recorder._limits._similar) == 1
    assert len(recorder._known) == 1
