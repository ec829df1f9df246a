"""The kinds of CustomResourceDefinitions: served, checked, described, and gone with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuworkshop.lab.api import custom, openapi_documents
from gpuworkshop.lab.api.kinds import BUILT_IN, CRD, INGRESS, NAMESPACE, POD, Kind
from gpuworkshop.lab.api.objects import Object, copy_of
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.store import Store

GROUP = "loads.example.com"
SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A load on a GPU.",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["shape"],
            "properties": {
                "shape": {"type": "string", "enum": ["wave", "steady"]},
                "period": {"type": "integer", "minimum": 1, "default": 40},
                "note": {"type": "string", "nullable": True},
                "ceiling": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"seen": {"type": "integer"}}},
    },
}


def version(name: str = "v1", **more: Any) -> dict[str, Any]:
    found = {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": SCHEMA}}
    return {**found, **more}


def definition(*versions: dict[str, Any], **names: Any) -> Object:
    named = {"plural": "loads", "singular": "load", "kind": "Load", "listKind": "LoadList", **names}
    listed = list(versions) or [version()]
    spec = {"group": GROUP, "scope": "Namespaced", "names": named, "versions": listed}
    return {"metadata": {"name": f"{named['plural']}.{GROUP}"}, "spec": spec}


@pytest.fixture
def registry() -> Registry:
    found = Registry(Store(":memory:"))
    found.create(NAMESPACE, {"metadata": {"name": "team"}})
    return found


def load_kind(registry: Registry, name: str = "v1") -> Kind:
    found = registry.kinds.find(GROUP, name, "loads")
    assert found is not None
    return found


def new_load(name: str = "a", **spec: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "team"}, "spec": {"shape": "wave", **spec}}


def test_one_kind_for_each_version_that_is_served(registry: Registry) -> None:
    status: dict[str, Any] = {"subresources": {"status": {}}}
    versions = (version(), version("v1beta1", **status), version("v2", served=False))
    made = definition(*versions, shortNames=["ld"], categories=["all"])
    kinds = custom.served(registry.create(CRD, made))
    assert [(kind.version, kind.subresources) for kind in kinds] == [("v1", ()), ("v1beta1", ("status",))]
    assert all(kind.namespaced and not kind.message for kind in kinds)
    assert {(kind.short_names, kind.categories, kind.resource) for kind in kinds} == {
        (("ld",), ("all",), f"loads.{GROUP}")
    }
    assert registry.kinds.find(GROUP, "v2", "loads") is None
    assert registry.kinds.of(f"{GROUP}/v1", "Load") == load_kind(registry)


def test_what_is_served_follows_the_definition(registry: Registry) -> None:
    crd = copy_of(registry.create(CRD, definition(version(), version("v1beta1"))))
    crd["spec"]["versions"] = [version("v1"), version("v2", served=True)]
    crd["spec"]["names"]["shortNames"] = ["ld"]
    registry.update(CRD, crd)
    assert {kind.version for kind in registry.kinds if kind.group == GROUP} == {"v1", "v2"}
    assert load_kind(registry, "v2").short_names == ("ld",)


def test_whole_cluster(registry: Registry) -> None:
    made = definition()
    made["spec"]["scope"] = "Cluster"
    registry.create(CRD, made)
    obj = registry.create(load_kind(registry), new_load())
    assert "namespace" not in obj["metadata"]
    assert registry.find(load_kind(registry), "", "a") == obj


def test_the_kinds_are_there_after_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path / "cluster.db")
    Registry(store).create(CRD, definition())
    store.close()
    assert load_kind(Registry(Store(tmp_path / "cluster.db"))).kind == "Load"


def test_an_object_is_pruned_and_gets_defaults(registry: Registry) -> None:
    registry.create(CRD, definition())
    kind = load_kind(registry)
    made = registry.create(kind, new_load(typo=1, note=None, ceiling="50%", free={"any": [1]}))
    expected = {"shape": "wave", "period": 40, "note": None, "ceiling": "50%", "free": {"any": [1]}}
    assert made["spec"] == expected
    assert (made["apiVersion"], made["kind"]) == (f"{GROUP}/v1", "Load")
    changed = copy_of(made)
    changed["spec"] |= {"typo": 2, "period": None, "note": "mine"}
    assert registry.update(kind, changed)["spec"] == {**expected, "note": "mine"}


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"shape": "square"}, 'spec.shape: Unsupported value: "square": supported values: "wave", "steady"'),
        ({"period": 0}, "spec.period: Invalid value: 0: spec.period in body should be greater"),
        ({"period": "long"}, 'spec.period: Invalid value: "string": spec.period in body must be of'),
        ({"ceiling": True}, 'spec.ceiling: Invalid value: "boolean"'),
    ],
)
def test_an_object_against_its_schema(registry: Registry, spec: dict[str, Any], says: str) -> None:
    registry.create(CRD, definition())
    kind = load_kind(registry)
    with pytest.raises(ApiError) as refused:
        registry.create(kind, new_load(**spec))
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert f'Load.{GROUP} "a" is invalid: {says}' in refused.value.message
    good = copy_of(registry.create(kind, new_load()))
    good["spec"] |= spec
    with pytest.raises(ApiError) as refused:
        registry.update(kind, good)
    assert says in refused.value.message


def test_each_version_has_its_own_schema(registry: Registry) -> None:
    bare = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    registry.create(CRD, definition(version(), version("v2", schema=bare)))
    registry.create(load_kind(registry, "v2"), new_load("b", shape="square"))
    with pytest.raises(ApiError):
        registry.create(load_kind(registry), new_load("c", shape="square"))
    assert custom.schema(registry, load_kind(registry, "v2")) == bare["openAPIV3Schema"]


def test_the_status_is_written_apart(registry: Registry) -> None:
    registry.create(CRD, definition(version(subresources={"status": {}})))
    kind = load_kind(registry)
    made = registry.create(kind, {**new_load(), "status": {"seen": 1}})
    assert "status" not in made
    written = registry.update(kind, {**made, "status": {"seen": 2}}, "status")
    assert written["status"] == {"seen": 2}
    assert written["metadata"]["generation"] == 1


def test_columns(registry: Registry) -> None:
    columns = [{"name": "Shape", "type": "string", "jsonPath": ".spec.shape"}]
    registry.create(CRD, definition(version(additionalPrinterColumns=columns), version("v2")))
    assert custom.printer_columns(registry, load_kind(registry)) == columns
    assert custom.printer_columns(registry, load_kind(registry, "v2")) == []
    assert custom.printer_columns(registry, POD) is None


def test_objects_go_with_their_definition(registry: Registry) -> None:
    registry.create(CRD, definition())
    kind = load_kind(registry)
    registry.create(kind, new_load())
    registry.delete(CRD, "", f"loads.{GROUP}")
    assert registry.kinds.find(GROUP, "v1", "loads") is None
    assert registry.store.list(kind.resource) == []
    registry.create(CRD, definition())
    assert registry.list(load_kind(registry)) == []


def test_a_definition_cannot_take_the_place_of_a_built_in_kind(registry: Registry) -> None:
    names = {"plural": "ingresses", "singular": "ingress", "kind": "Ingress", "listKind": "IngressList"}
    made = definition(**names)
    made["metadata"]["name"], made["spec"]["group"] = INGRESS.resource, INGRESS.group
    registry.create(CRD, made)
    assert registry.kinds.find(INGRESS.group, "v1", "ingresses") == INGRESS
    assert custom.schema(registry, INGRESS) is None
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    kept = {"metadata": {"name": "kept", "namespace": "team"}, "spec": {"defaultBackend": backend}}
    registry.create(INGRESS, kept)
    registry.delete(CRD, "", INGRESS.resource)
    assert registry.find(INGRESS, "team", "kept")
    assert set(registry.kinds) == set(BUILT_IN)


def test_accepted_status() -> None:
    found = custom.accepted(definition(version(), version("v2")), 0.0)
    assert found["storedVersions"] == ["v1"]
    assert found["acceptedNames"]["kind"] == "Load"
    assert {(c["type"], c["status"]) for c in found["conditions"]} == {
        ("NamesAccepted", "True"),
        ("Established", "True"),
    }


def described(registry: Registry, path: str) -> dict[str, Any]:
    found = openapi_documents.document(registry, path)
    assert found is not None, path
    return found


def properties_of(found: dict[str, Any], kind: str) -> dict[str, Any]:
    """The properties of the one schema that says that it is a kind's."""
    (properties,) = (
        schema["properties"]
        for schema in found["components"]["schemas"].values()
        if any(gvk["kind"] == kind for gvk in schema.get("x-kubernetes-group-version-kind", ()))
    )
    return dict(properties)


def test_every_document_that_the_root_names_is_there(registry: Registry) -> None:
    registry.create(CRD, definition())
    paths = described(registry, "/openapi/v3")["paths"]
    assert {"api/v1", "apis/apps/v1", f"apis/{GROUP}/v1"} <= paths.keys()
    for path, entry in paths.items():
        assert described(registry, f"/openapi/v3/{path}")["paths"]
        assert entry["serverRelativeURL"].partition("?")[0] == f"/openapi/v3/{path}"
    assert described(registry, "/openapi/v3/") == described(registry, "/openapi/v3")


@pytest.mark.parametrize(
    "path",
    [
        "/openapi/v2",
        "/openapi",
        "/openapi/v3/api",
        "/openapi/v3/api/v2",
        "/openapi/v3/apis/apps",
        "/openapi/v3/apis/apps/v9",
        "/openapi/v3/apis//v1",
        f"/openapi/v3/apis/{GROUP}/v1",
        "/openapi/v3/api/v1/pods",
    ],
)
def test_documents_that_are_not_there(registry: Registry, path: str) -> None:
    assert openapi_documents.document(registry, path) is None


def test_documents_follow_the_definitions(registry: Registry) -> None:
    path = f"/openapi/v3/apis/{GROUP}/v1"
    hashes = [root_hash(registry)]
    crd = copy_of(registry.create(CRD, definition()))
    hashes.append(root_hash(registry))
    assert "period" in properties_of(described(registry, path), "Load")["spec"]["properties"]
    assert described(registry, path) is described(registry, path)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {"type": "string"}
    registry.update(CRD, crd)
    hashes.append(root_hash(registry))
    assert properties_of(described(registry, path), "Load")["spec"] == {"type": "string"}
    registry.delete(CRD, "", f"loads.{GROUP}")
    assert openapi_documents.document(registry, path) is None
    assert len(set(hashes)) == 3
    assert root_hash(registry) == hashes[0]


def root_hash(registry: Registry) -> str:
    url = described(registry, "/openapi/v3")["paths"]["api/v1"]["serverRelativeURL"]
    return str(url).partition("?hash=")[2]


def test_two_clusters_do_not_mix(registry: Registry) -> None:
    other = Registry(Store(":memory:"))
    other.create(NAMESPACE, {"metadata": {"name": "team"}})
    registry.create(CRD, definition())
    strange = definition()
    strange["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", "description": "Else."}
    other.create(CRD, strange)
    path = f"/openapi/v3/apis/{GROUP}/v1"
    assert "spec" in properties_of(described(registry, path), "Load")
    assert "spec" not in properties_of(described(other, path), "Load")
    # Both have the same resourceVersion, and kubectl caches by this hash.
    assert root_hash(registry) != root_hash(other)
