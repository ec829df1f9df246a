"""What discovery says of groups, versions and subresources: order, verbs, and the kinds that they speak."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpuworkshop.lab.api.kinds import NODE, POD, SERVICE, Kind, KindTable

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_CHANGE, _CONNECT = ("get", "patch", "update"), ("create", "get")
_VERBS: dict[str, tuple[str, ...]] = {
    "status": _CHANGE,
    "scale": _CHANGE,
    "log": ("get",),
    "exec": _CONNECT,
    "attach": _CONNECT,
    "portforward": _CONNECT,
    "proxy": ("create", "delete", "get", "patch", "update"),
    "eviction": ("create",),
    "binding": ("create",),
    "token": ("create",),
    "finalize": ("update",),
}
# Those that speak another kind than their object's: group, version, kind.
_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "binding": ("", "v1", "Binding"),
    "exec": ("", "v1", "PodExecOptions"),
    "attach": ("", "v1", "PodAttachOptions"),
    "portforward": ("", "v1", "PodPortForwardOptions"),
}
_PROXIES = {kind.resource: ("", "v1", f"{kind.kind}ProxyOptions") for kind in (POD, SERVICE, NODE)}


@dataclass(frozen=True)
class Subresource:
    """A subresource: the kind of what is sent and answered, and its verbs."""

    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]

    @property
    def api_version(self) -> str:
        """`v1`, or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def response_kind(self) -> dict[str, str]:
        """Its kind, as aggregated discovery names one."""
        return {"group": self.group, "version": self.version, "kind": self.kind}


def subresource(kind: Kind, name: str) -> Subresource:
    """A kind's subresource of that name."""
    own = (kind.group, kind.version, kind.kind)
    spoken = _PROXIES.get(kind.resource, own) if name == "proxy" else _KINDS.get(name, own)
    return Subresource(*spoken, _VERBS[name])


def kinds_of(kinds: KindTable, group: str, version: str) -> list[Kind]:
    """The kinds that are served in a version of a group."""
    return [kind for kind in kinds if (kind.group, kind.version) == (group, version)]


def versions_of(kinds: KindTable, group: str) -> list[str]:
    """The versions of a group, the preferred one first: stable before beta before alpha, new before old."""
    found = {kind.version for kind in kinds if kind.group == group}
    return sorted(found, key=_preference)


def _preference(version: str) -> tuple[int, int, int, str]:
    parts = _VERSION.fullmatch(version)
    if parts is None:
        return (3, 0, 0, version)
    major, stage, minor = parts.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), version)
