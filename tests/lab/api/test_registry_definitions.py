"""CRDs come and go: with the objects of their kinds, which may take their time."""

from __future__ import annotations

from typing import Any

import pytest
from own_api_server import new_registry

from gpuworkshop.lab.api import custom, definition_types
from gpuworkshop.lab.api.kinds import CRD, Kind
from gpuworkshop.lab.api.objects import Object, copy_of, is_deleted, meta
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.store import Store

NAME = "loads.example.org"
HOLD = "example.org/hold"
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def a_version(name: str = "v1", **more: Any) -> Object:
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}, **more}


def a_definition(*versions: Object) -> Object:
    names = {"plural": "loads", "singular": "load", "kind": "Load", "listKind": "LoadList"}
    spec = {"group": "example.org", "scope": "Namespaced", "names": names}
    return {"metadata": {"name": NAME}, "spec": {**spec, "versions": list(versions) or [a_version()]}}


@pytest.fixture
def registry() -> Registry:
    found = new_registry()
    found.create(CRD, a_definition())
    return found


def loads(registry: Registry, version: str = "v1") -> Kind:
    kind = registry.kinds.find("example.org", version, "loads")
    assert kind is not None
    return kind


def a_load(registry: Registry, name: str = "one", *finalizers: str) -> Object:
    metadata = {"name": name, "namespace": "default", "finalizers": list(finalizers)}
    return registry.create(loads(registry), {"metadata": metadata, "spec": {"shape": "wave"}})


def change_versions(registry: Registry, *versions: Object) -> None:
    registry.modify(CRD, "", NAME, lambda crd: crd["spec"].update(versions=list(versions)))


def test_its_objects_go_with_it(registry: Registry) -> None:
    a_load(registry)
    begun = registry.store.log.end
    registry.delete(CRD, "", NAME)
    changes = registry.store.log.read(begun)
    assert changes is not None
    assert [(change.type, change.resource) for change in changes] == [
        ("DELETED", NAME),
        ("DELETED", CRD.resource),
    ]
    assert registry.kinds.find("example.org", "v1", "loads") is None
    assert registry.store.list(NAME) == []


def test_it_waits_for_objects_that_take_their_time(registry: Registry) -> None:
    a_load(registry, "one", HOLD)
    a_load(registry, "two")
    kind = loads(registry)
    registry.delete(CRD, "", NAME)
    crd = registry.get(CRD, "", NAME)
    assert is_deleted(crd)
    assert meta(crd)["finalizers"] == [custom.CLEANUP]
    assert [meta(obj)["name"] for obj in registry.list(kind)] == ["one"]
    assert is_deleted(registry.get(kind, "default", "one"))
    with pytest.raises(ApiError, match="custom resource definition is terminating") as caught:
        a_load(registry, "three")
    assert caught.value.code == 405
    registry.delete(CRD, "", NAME)  # once more is no harm
    registry.modify(kind, "default", "one", lambda obj: meta(obj).update(finalizers=[]))
    assert registry.find(CRD, "", NAME) is None
    assert registry.kinds.find("example.org", "v1", "loads") is None


def test_a_finalizer_of_its_own_holds_it_besides(registry: Registry) -> None:
    registry.modify(CRD, "", NAME, lambda crd: meta(crd).update(finalizers=[HOLD]))
    a_load(registry, "one", HOLD)
    kind = loads(registry)
    registry.delete(CRD, "", NAME)
    registry.modify(kind, "default", "one", lambda obj: meta(obj).update(finalizers=[]))
    assert meta(registry.get(CRD, "", NAME))["finalizers"] == [HOLD]
    registry.modify(CRD, "", NAME, lambda crd: meta(crd).update(finalizers=[]))
    assert registry.find(CRD, "", NAME) is None


def test_a_dry_run_of_its_deletion_spares_its_objects(registry: Registry) -> None:
    a_load(registry)
    registry.delete(CRD, "", NAME, dry_run=True)
    assert [meta(obj)["name"] for obj in registry.list(loads(registry))] == ["one"]


def test_objects_of_a_version_that_is_served_no_more_go_too(registry: Registry) -> None:
    a_load(registry)
    change_versions(registry, a_version(served=False))
    assert registry.kinds.find("example.org", "v1", "loads") is None
    registry.delete(CRD, "", NAME)
    assert registry.store.list(NAME) == []


def test_versions_come_and_go_and_the_objects_stay(registry: Registry) -> None:
    made = a_load(registry)
    change_versions(registry, a_version(), a_version("v2", storage=False))
    assert registry.get(loads(registry, "v2"), "default", "one") is made
    change_versions(registry, a_version())
    assert registry.kinds.find("example.org", "v2", "loads") is None
    registry.delete(CRD, "", NAME)
    registry.create(CRD, a_definition(a_version("v3")))
    assert registry.list(loads(registry, "v3")) == []


def test_they_are_served_after_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("store") / "cluster.db"
    first = new_registry(path=path)
    first.create(CRD, a_definition())
    a_load(first, "one", HOLD)
    first.delete(CRD, "", NAME)
    first.store.close()
    second = Registry(Store(path))
    kind = loads(second)
    second.modify(kind, "default", "one", lambda obj: meta(obj).update(finalizers=[]))
    assert second.find(CRD, "", NAME) is None, "it still waited for that object"
    second.store.close()


WRONG: dict[str, tuple[str, Any]] = {
    "properties of a list": ("properties", []),
    "a property that is a text": ("properties", {"a": "string"}),
    "items of a list": ("items", [{"type": "string"}]),
    "a bound of a text": ("minimum", "1"),
    "required of a text": ("required", "a"),
    "enum of a text": ("enum", "a"),
    "a type of a list": ("type", ["object"]),
    "a flag of a text": ("nullable", "yes"),
    "keys of a number": ("x-kubernetes-list-map-keys", [1]),
}


@pytest.mark.parametrize(("field", "value"), WRONG.values(), ids=WRONG)
def test_a_schema_of_other_types_is_refused(field: str, value: Any) -> None:
    inner = {"type": "object", "properties": {"spec": {**SCHEMA, field: value}}}
    wrong = a_definition(a_version(schema={"openAPIV3Schema": inner}))
    with pytest.raises(ApiError, match="cannot be handled as a CustomResourceDefinition") as caught:
        definition_types.check(wrong)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    assert "openAPIV3Schema" in caught.value.message


def test_a_whole_schema_is_as_it_should_be() -> None:
    inner = {
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "b": {"additionalProperties": {"type": "integer", "minimum": 1.5, "nullable": True}},
            "c": {"additionalProperties": True, "default": {"x": 1}, "enum": [1, "a", None]},
            "d": {"anyOf": [{"type": "integer"}], "not": {"type": "string"}, "x-of-somebody-else": [1]},
        },
    }
    whole = a_definition(a_version(schema={"openAPIV3Schema": inner}, subresources={"status": {}}))
    before = copy_of(whole)
    definition_types.check(whole)
    assert whole == before
