"""Discovery documents, old and aggregated, as kubectl and the Python client read them."""

from __future__ import annotations

from typing import Any

import pytest

from gpuworkshop.lab.api import discovery, kinds
from gpuworkshop.lab.api.kinds import Kind, KindTable
from gpuworkshop.lab.api.objects import Object

JSON = "application/json"
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
KUBECTL = f"{V2},{V2.replace('v=v2;', 'v=v2beta1;')},{JSON}"
TABLE = KindTable()


def get(path: str, accept: str = JSON, table: KindTable = TABLE) -> Object:
    found, _ = discovery.document(table, path, accept)
    assert found is not None
    return found


def resources(path: str) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in get(path)["resources"]}


def test_version() -> None:
    found = discovery.version("v1.35.2")
    assert (found["major"], found["minor"], found["gitVersion"]) == ("1", "35", "v1.35.2")
    assert found["platform"].startswith("linux/")
    expected = {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler"}
    assert expected <= set(found)


def test_core_versions() -> None:
    assert get("/api")["kind"] == "APIVersions"
    assert get("/api")["versions"] == ["v1"]


def test_core_resources() -> None:
    found = resources("/api/v1")
    assert get("/api/v1")["groupVersion"] == "v1"
    assert found["pods"] == {
        "name": "pods",
        "singularName": "pod",
        "namespaced": True,
        "kind": "Pod",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["po"],
        "categories": ["all"],
    }
    assert found["nodes"]["namespaced"] is False
    assert "categories" not in found["configmaps"]


@pytest.mark.parametrize(
    ("path", "name", "kind", "group", "verbs"),
    [
        ("/api/v1", "pods/log", "Pod", None, ["get"]),
        ("/api/v1", "pods/exec", "PodExecOptions", None, ["create", "get"]),
        ("/api/v1", "pods/portforward", "PodPortForwardOptions", None, ["create", "get"]),
        ("/api/v1", "pods/eviction", "Eviction", ("policy", "v1"), ["create"]),
        ("/api/v1", "pods/binding", "Binding", None, ["create"]),
        ("/api/v1", "services/proxy", "ServiceProxyOptions", None, None),
        ("/api/v1", "nodes/proxy", "NodeProxyOptions", None, None),
        ("/api/v1", "serviceaccounts/token", "TokenRequest", ("authentication.k8s.io", "v1"), ["create"]),
        ("/api/v1", "namespaces/finalize", "Namespace", None, ["update"]),
        ("/apis/apps/v1", "deployments/scale", "Scale", ("autoscaling", "v1"), ["get", "patch", "update"]),
        ("/apis/apps/v1", "deployments/status", "Deployment", None, ["get", "patch", "update"]),
    ],
)
def test_subresources(
    path: str, name: str, kind: str, group: tuple[str, str] | None, verbs: list[str] | None
) -> None:
    found = resources(path)[name]
    assert (found["kind"], found["singularName"]) == (kind, "")
    assert (found.get("group"), found.get("version")) == (group or (None, None))
    assert verbs is None or found["verbs"] == verbs


def test_groups() -> None:
    found = {group["name"]: group for group in get("/apis")["groups"]}
    assert "" not in found
    assert {"apps", "batch", "rbac.authorization.k8s.io", "apiextensions.k8s.io"} <= set(found)
    assert found["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    one = get("/apis/apps")
    assert (one["kind"], one["name"], one["versions"]) == ("APIGroup", "apps", found["apps"]["versions"])


def test_reviews_can_only_be_created() -> None:
    assert resources("/apis/authorization.k8s.io/v1")["selfsubjectaccessreviews"]["verbs"] == ["create"]


@pytest.mark.parametrize("path", ["/apis/nothing", "/apis/nothing/v1", "/apis/apps/v9", "/api/v2"])
def test_what_is_not_served(path: str) -> None:
    assert discovery.document(TABLE, path, JSON)[0] is None


@pytest.mark.parametrize(
    ("accept", "kind", "media_type"),
    [
        (KUBECTL, "APIGroupDiscoveryList", V2),
        (KUBECTL.replace(V2 + ",", ""), "APIGroupDiscoveryList", V2.replace("v=v2;", "v=v2beta1;")),
        (JSON, "APIGroupList", JSON),
        ("", "APIGroupList", JSON),
        ("*/*", "APIGroupList", JSON),
        (f"{JSON}, {V2}", "APIGroupList", JSON),
        (V2.replace("v=v2;", "v=v9;") + ",application/json", "APIGroupList", JSON),
        (
            V2.replace("application/json", "application/vnd.kubernetes.protobuf") + f",{V2}",
            "APIGroupDiscoveryList",
            V2,
        ),
        (V2.replace(";", "; "), "APIGroupDiscoveryList", V2),
    ],
)
def test_the_form_that_the_client_wants(accept: str, kind: str, media_type: str) -> None:
    found, seen = discovery.document(TABLE, "/apis", accept)
    assert found is not None
    assert (found["kind"], seen) == (kind, media_type)


def test_aggregated_core() -> None:
    found = get("/api", V2)
    assert found["apiVersion"] == "apidiscovery.k8s.io/v2"
    (core,) = found["items"]
    assert "name" not in core["metadata"]
    (version,) = core["versions"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    pods = next(entry for entry in version["resources"] if entry["resource"] == "pods")
    assert pods["responseKind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert (pods["scope"], pods["singularResource"], pods["shortNames"]) == ("Namespaced", "pod", ["po"])
    subresources = {entry["subresource"]: entry for entry in pods["subresources"]}
    assert subresources["eviction"] == {
        "subresource": "eviction",
        "responseKind": {"group": "policy", "version": "v1", "kind": "Eviction"},
        "verbs": ["create"],
    }


def test_aggregated_groups_hold_all_that_the_old_documents_do() -> None:
    for group in get("/apis", V2)["items"]:
        for version in group["versions"]:
            flat = {entry["resource"] for entry in version["resources"]} | {
                f"{entry['resource']}/{sub['subresource']}"
                for entry in version["resources"]
                for sub in entry.get("subresources", [])
            }
            assert flat == set(resources(f"/apis/{group['metadata']['name']}/{version['version']}"))


def test_a_trailing_slash_changes_nothing() -> None:
    for path in ("/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1"):
        assert get(path + "/") == get(path)


def test_custom_kinds_and_the_order_of_versions() -> None:
    table = KindTable()
    versions = ["v1alpha1", "v1", "v2beta1", "v10", "v2", "v2beta2", "custom"]
    for version in versions:
        table.add(Kind("example.org", version, "Wave", "waves", namespaced=False, short_names=("wv",)))
    group = get("/apis/example.org", table=table)
    expected = ["v10", "v2", "v1", "v2beta2", "v2beta1", "v1alpha1", "custom"]
    assert [found["version"] for found in group["versions"]] == expected
    assert group["preferredVersion"]["groupVersion"] == "example.org/v10"
    aggregated = next(g for g in get("/apis", V2, table)["items"] if g["metadata"]["name"] == "example.org")
    assert [found["version"] for found in aggregated["versions"]] == expected
    (wave,) = aggregated["versions"][0]["resources"]
    assert (wave["scope"], wave["shortNames"], "subresources" in wave) == ("Cluster", ["wv"], False)


def test_every_kind_is_found() -> None:
    found = {
        entry["name"]
        for path in ["/api/v1", *(f"/apis/{g['name']}/v1" for g in get("/apis")["groups"])]
        for entry in get(path)["resources"]
    }
    assert {kind.plural for kind in kinds.BUILT_IN} <= found
