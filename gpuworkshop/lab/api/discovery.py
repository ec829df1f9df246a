"""Discovery: which groups, versions and resources are served, in the old documents and the aggregated one."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from typing import Any

from gpuworkshop.lab.api import served
from gpuworkshop.lab.api.kinds import Kind, KindTable
from gpuworkshop.lab.api.objects import Object

JSON = "application/json"
AGGREGATED_GROUP = "apidiscovery.k8s.io"
AGGREGATED_VERSIONS = ("v2", "v2beta1")


def version(git_version: str) -> Object:
    """The answer to `/version` of a server of version `v1.35.2`."""
    major, minor = git_version.removeprefix("v").split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "gitVersion": git_version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": f"linux/{'arm64' if platform.machine() == 'aarch64' else 'amd64'}",
    }


def document(kinds: KindTable, path: str, accept: str) -> tuple[Object | None, str]:
    """The document at `/api`, `/apis`, `/api/v1`, `/apis/GROUP` or `/apis/GROUP/VERSION`, and its media type.

    None for a group or version that is not served.
    """
    parts = path.strip("/").split("/")
    if len(parts) == 1:
        if aggregated := _aggregated_version(accept):
            media_type = f"{JSON};g={AGGREGATED_GROUP};v={aggregated};as=APIGroupDiscoveryList"
            groups = [""] if parts == ["api"] else list(kinds.groups())
            return _aggregated_list(kinds, groups, aggregated), media_type
        return (_core_versions() if parts == ["api"] else _group_list(kinds)), JSON
    if parts[0] == "api":
        return _resource_list(kinds, "", parts[1]), JSON
    if len(parts) == 2:
        found = _group(kinds, parts[1])
        return None if found is None else {"kind": "APIGroup", "apiVersion": "v1", **found}, JSON
    return _resource_list(kinds, parts[1], parts[2]), JSON


def _aggregated_version(accept: str) -> str:
    """The version of aggregated discovery that the client wants first of all, "" for the old documents."""
    for part in accept.split(","):
        words = {word.strip() for word in part.split(";")}
        if "as=APIGroupDiscoveryList" in words and f"g={AGGREGATED_GROUP}" in words:
            for known in AGGREGATED_VERSIONS:
                if f"v={known}" in words and JSON in words:
                    return known
        elif words & {JSON, "*/*"}:
            return ""
    return ""


def _core_versions() -> Object:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    }


def _group_list(kinds: KindTable) -> Object:
    groups = [_group(kinds, group) for group in kinds.groups()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def _group(kinds: KindTable, group: str) -> dict[str, Any] | None:
    found = [
        {"groupVersion": f"{group}/{version}", "version": version}
        for version in served.versions_of(kinds, group)
    ]
    return {"name": group, "versions": found, "preferredVersion": found[0]} if found else None


def _resource_list(kinds: KindTable, group: str, version: str) -> Object | None:
    found = served.kinds_of(kinds, group, version)
    if not found:
        return None
    api_version = found[0].api_version
    resources = [entry for kind in found for entry in _resources(kind)]
    head = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version}
    return {**head, "resources": resources}


def _resources(kind: Kind) -> Iterable[dict[str, Any]]:
    """A kind's resource, and each subresource as a resource of its own."""
    yield {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
        **_names(kind),
    }
    for name in kind.subresources:
        sub = served.subresource(kind, name)
        group = {} if sub.api_version == kind.api_version else {"group": sub.group, "version": sub.version}
        yield {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **group,
            "kind": sub.kind,
            "verbs": list(sub.verbs),
        }


def _aggregated_list(kinds: KindTable, groups: Iterable[str], version: str) -> Object:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{AGGREGATED_GROUP}/{version}",
        "metadata": {},
        "items": [_aggregated_group(kinds, group) for group in groups],
    }


def _aggregated_group(kinds: KindTable, group: str) -> dict[str, Any]:
    versions = [
        {
            "version": version,
            "resources": [_aggregated_resource(kind) for kind in served.kinds_of(kinds, group, version)],
            "freshness": "Current",
        }
        for version in served.versions_of(kinds, group)
    ]
    metadata = {**({"name": group} if group else {}), "creationTimestamp": None}
    return {"metadata": metadata, "versions": versions}


def _aggregated_resource(kind: Kind) -> dict[str, Any]:
    subresources = [
        {
            "subresource": name,
            "responseKind": (sub := served.subresource(kind, name)).response_kind(),
            "verbs": list(sub.verbs),
        }
        for name in kind.subresources
    ]
    return {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        **_names(kind),
        **({"subresources": subresources} if subresources else {}),
    }


def _names(kind: Kind) -> dict[str, list[str]]:
    found = {"shortNames": kind.short_names, "categories": kind.categories}
    return {key: list(values) for key, values in found.items() if values}
