"""What creating and updating do to an object: names, versions, generations, and what stays as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

import pytest
from access_lab import START, Clock
from own_api_server import new_registry

from gpuworkshop.lab.api.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, NODE, POD
from gpuworkshop.lab.api.objects import Object, copy_of, meta, name_of, timestamp
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry, Write

CONTAINERS = [{"name": "main", "image": "nginx"}]


@pytest.fixture
def registry() -> Registry:
    return new_registry(Clock())


def a_map(name: str = "one", **more: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"a": "1"}, **more}


def a_deployment(replicas: int = 1) -> Object:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}


def refused(code: int, reason: str, action: Callable[[], object]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        action()
    assert (caught.value.code, caught.value.reason) == (code, reason), caught.value
    return caught.value


def test_a_new_object_gets_what_only_the_server_gives(registry: Registry) -> None:
    given = a_map()
    given["metadata"] |= {
        "uid": "mine",
        "generation": 7,
        "creationTimestamp": "1999-01-01T00:00:00Z",
        "deletionTimestamp": "1999-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
        "selfLink": "/x",
    }
    before = copy_of(given)
    made = registry.create(CONFIG_MAP, given)
    assert given == before, "what the caller gave is the caller's"
    metadata = meta(made)
    assert (made["apiVersion"], made["kind"]) == ("v1", "ConfigMap")
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] == timestamp(START)
    assert metadata["resourceVersion"] == str(registry.store.revision)
    assert metadata.keys() == {"name", "namespace", "uid", "creationTimestamp", "resourceVersion"}


def test_a_status_at_creation_is_dropped_but_for_nodes(registry: Registry) -> None:
    deployment = registry.create(DEPLOYMENT, {**a_deployment(), "status": {"replicas": 9}})
    assert "status" not in deployment
    node = registry.create(NODE, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1"}}})
    assert node["status"]["capacity"] == {"cpu": "1"}


def test_a_name_that_is_taken(registry: Registry) -> None:
    made = registry.create(CONFIG_MAP, a_map())
    error = refused(409, "AlreadyExists", lambda: registry.create(CONFIG_MAP, a_map()))
    assert error.message == 'configmaps "one" already exists'
    assert registry.get(CONFIG_MAP, "default", "one") is made


def test_generated_names_are_long_enough_and_never_taken(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = iter("bbbbb" + "bbbbb" + "ccccc")
    monkeypatch.setattr("secrets.choice", lambda _: next(letters))
    given = {"metadata": {"generateName": "job-", "namespace": "default"}}
    assert name_of(registry.create(CONFIG_MAP, given)) == "job-bbbbb"
    assert name_of(registry.create(CONFIG_MAP, given)) == "job-ccccc", "the first try was taken"


def test_a_long_prefix_is_cut_and_a_name_wins_over_it(registry: Registry) -> None:
    made = registry.create(CONFIG_MAP, {"metadata": {"generateName": "x" * 80, "namespace": "default"}})
    assert len(name_of(made)) == 63
    both = {"metadata": {"generateName": "job-", "name": "mine", "namespace": "default"}}
    assert name_of(registry.create(CONFIG_MAP, both)) == "mine"


def test_a_version_has_no_place_in_a_creation(registry: Registry) -> None:
    given = a_map()
    meta(given)["resourceVersion"] = "1"
    refused(400, "BadRequest", lambda: registry.create(CONFIG_MAP, given))


def test_a_namespace_has_to_be_there(registry: Registry) -> None:
    given = a_map()
    meta(given)["namespace"] = "nowhere"
    error = refused(404, "NotFound", lambda: registry.create(CONFIG_MAP, given))
    assert error.message == 'namespaces "nowhere" not found'


def test_an_object_of_the_whole_cluster_loses_its_namespace(registry: Registry) -> None:
    made = registry.create(NODE, {"metadata": {"name": "n", "namespace": "default"}})
    assert "namespace" not in meta(made)
    assert registry.find(NODE, "whatever", "n") is made


def test_updates_that_change_nothing_write_nothing(registry: Registry) -> None:
    made = registry.create(DEPLOYMENT, a_deployment(), Write("tests"))
    revision, end = registry.store.revision, registry.store.log.end
    assert registry.update(DEPLOYMENT, copy_of(made), how=Write("tests")) is made
    # The defaults, the status and the server's metadata are filled in again.
    assert registry.update(DEPLOYMENT, a_deployment(), how=Write("tests")) == made
    assert registry.modify(DEPLOYMENT, "default", "web", lambda _: None) is made
    assert registry.update(DEPLOYMENT, {**copy_of(made), "status": {"replicas": 3}}) is made
    assert (registry.store.revision, registry.store.log.end) == (revision, end)


def test_generation_counts_changes_of_the_spec_alone(registry: Registry) -> None:
    def generation_after(change: Callable[[Object], None], subresource: str = "") -> int:
        registry.modify(DEPLOYMENT, "default", "web", change, subresource)
        return int(meta(registry.get(DEPLOYMENT, "default", "web"))["generation"])

    registry.create(DEPLOYMENT, a_deployment())
    assert generation_after(lambda obj: meta(obj).update(labels={"a": "b"})) == 1
    assert generation_after(lambda obj: obj.update(status={"replicas": 1}), "status") == 1
    assert generation_after(lambda obj: obj["spec"].update(replicas=2)) == 2
    assert generation_after(lambda obj: obj["spec"].update(replicas=2)) == 2
    assert generation_after(lambda obj: meta(obj).update(generation=77)) == 2


def test_each_subresource_changes_its_own_part(registry: Registry) -> None:
    made = registry.create(DEPLOYMENT, a_deployment())
    both = copy_of(made)
    both["spec"]["replicas"], both["status"] = 5, {"replicas": 5}
    meta(both)["labels"] = {"a": "b"}
    changed = registry.update(DEPLOYMENT, both, "status")
    assert changed["spec"] == made["spec"]
    assert "labels" not in meta(changed)
    assert changed["status"] == {"replicas": 5}
    meta(both).pop("resourceVersion")
    both["status"] = {"replicas": 99}
    changed = registry.update(DEPLOYMENT, both)
    assert (changed["spec"]["replicas"], changed["status"]) == (5, {"replicas": 5})


def test_what_identifies_an_object_cannot_be_changed(registry: Registry) -> None:
    made = registry.create(CONFIG_MAP, a_map())
    other = a_map(data={"a": "2"})
    other["metadata"] |= {"creationTimestamp": None, "deletionTimestamp": "2020-01-01T00:00:00Z"}
    updated = registry.update(CONFIG_MAP, other)
    kept = ("uid", "creationTimestamp", "name", "namespace")
    assert [meta(updated)[key] for key in kept] == [meta(made)[key] for key in kept]
    assert "deletionTimestamp" not in meta(updated)


def test_two_writers_one_version(registry: Registry) -> None:
    made = registry.create(CONFIG_MAP, a_map())
    first, second = copy_of(made), copy_of(made)
    first["data"], second["data"] = {"a": "first"}, {"a": "second"}
    registry.update(CONFIG_MAP, first)
    error = refused(409, "Conflict", lambda: registry.update(CONFIG_MAP, second))
    assert "the object has been modified" in error.message
    assert registry.get(CONFIG_MAP, "default", "one")["data"] == {"a": "first"}
    meta(second).pop("resourceVersion")  # who names none means to overwrite
    assert registry.update(CONFIG_MAP, second)["data"] == {"a": "second"}


def test_another_object_of_the_same_name_is_not_updated(registry: Registry) -> None:
    made = registry.create(CONFIG_MAP, a_map())
    registry.delete(CONFIG_MAP, "default", "one")
    registry.create(CONFIG_MAP, a_map())
    stale = copy_of(made)
    meta(stale).pop("resourceVersion")
    assert "UID" in refused(409, "Conflict", lambda: registry.update(CONFIG_MAP, stale)).message


def test_what_is_not_there(registry: Registry) -> None:
    refused(404, "NotFound", lambda: registry.update(CONFIG_MAP, a_map()))
    assert registry.modify(CONFIG_MAP, "default", "one", lambda _: None) is None
    assert registry.delete(CONFIG_MAP, "default", "one") is None


def test_dry_runs_answer_and_leave_no_trace(registry: Registry) -> None:
    dry = Write("tests", dry_run=True)
    revision = registry.store.revision
    imagined = registry.create(CONFIG_MAP, a_map(), dry)
    assert meta(imagined)["uid"]
    assert "resourceVersion" not in meta(imagined)
    assert registry.store.revision == revision
    made = registry.create(CONFIG_MAP, a_map())
    assert registry.update(CONFIG_MAP, a_map(data={"b": "2"}), how=dry)["data"] == {"b": "2"}
    marked = registry.delete(CONFIG_MAP, "default", "one", dry_run=True)
    assert marked is not None
    assert meta(marked)["deletionTimestamp"]
    assert registry.get(CONFIG_MAP, "default", "one") is made
    refused(409, "AlreadyExists", lambda: registry.create(CONFIG_MAP, a_map(), dry))


def test_a_dry_run_does_not_end_a_deletion(registry: Registry) -> None:
    held = a_map()
    meta(held)["finalizers"] = ["example.org/hold"]
    registry.create(CONFIG_MAP, held)
    registry.delete(CONFIG_MAP, "default", "one")
    released = copy_of(registry.get(CONFIG_MAP, "default", "one"))
    meta(released)["finalizers"] = []
    registry.update(CONFIG_MAP, released, how=Write(dry_run=True))
    assert registry.find(CONFIG_MAP, "default", "one") is not None
    registry.update(CONFIG_MAP, released)
    assert registry.find(CONFIG_MAP, "default", "one") is None


def test_an_object_that_no_real_cluster_could_keep(registry: Registry) -> None:
    half = "x" * (2**19)
    fits = a_map(data={"a": half}, binaryData={"b": "AAAA" * (2**17 - 2000)})
    made = registry.create(CONFIG_MAP, fits)
    growing = copy_of(made)
    meta(growing)["annotations"] = {f"example.org/{n}": "y" * 1000 for n in range(250)}
    growing["data"] = {"a": "x" * (2**19 - 1)}
    registry.update(CONFIG_MAP, growing)
    pod = {"metadata": {"name": "big", "namespace": "default"}, "spec": {"containers": [dict(CONTAINERS[0])]}}
    pod["spec"]["containers"][0]["args"] = [half] * 3  # type: ignore[index]
    error = refused(413, "RequestEntityTooLarge", lambda: registry.create(POD, pod))
    assert error.message == "etcdserver: request is too large"
    assert registry.find(POD, "default", "big") is None


def test_a_disk_that_is_full_is_told_and_forgotten(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = registry.create(CONFIG_MAP, a_map())

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(registry.store, "write", full)
        patch.setattr(registry.store, "remove", full)
        for action in (
            lambda: registry.create(CONFIG_MAP, a_map("two")),
            lambda: registry.update(CONFIG_MAP, a_map(data={})),
            lambda: registry.delete(CONFIG_MAP, "default", "one"),
        ):
            error = refused(500, "InternalError", action)
            assert "disk is full" in error.message
            assert "df -h" in error.message
        registry.event(made, "Normal", "Seen", "nothing fails for want of an event", "tests")
    assert registry.list(CONFIG_MAP, "default") == [made]
    registry.create(CONFIG_MAP, a_map("two"))


def test_lists_are_in_the_order_of_names(registry: Registry) -> None:
    registry.create(NAMESPACE, {"metadata": {"name": "a"}})
    for namespace, name in (("default", "b"), ("default", "a"), ("a", "z")):
        registry.create(CONFIG_MAP, {"metadata": {"name": name, "namespace": namespace}})
    assert [(meta(obj)["namespace"], name_of(obj)) for obj in registry.list(CONFIG_MAP)] == [
        ("a", "z"),
        ("default", "a"),
        ("default", "b"),
    ]
    assert [name_of(obj) for obj in registry.list(CONFIG_MAP, "default")] == ["a", "b"]
