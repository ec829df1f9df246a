"""What a path and a method name: a kind, a namespace, a name, a subresource, and the verb for RBAC."""

from __future__ import annotations

from dataclasses import dataclass

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.kinds import Kind, KindTable

_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


@dataclass(frozen=True)
class Address:
    """What a path names; an empty name is the collection. `rest` is what a proxy passes on."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""

    def verb(self, method: str, watch: bool) -> str:
        """The verb under which RBAC knows the request."""
        verb = _VERBS.get(method, method.lower())
        if self.name:
            return verb
        if verb == "get":
            return "watch" if watch else "list"
        return "deletecollection" if verb == "delete" else verb

    @property
    def resource(self) -> str:
        """`pods`, or `pods/log`."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural


def parse(kinds: KindTable, path: str) -> Address:
    """The address of `/api/v1/…` or `/apis/GROUP/VERSION/…`; ApiError 404 for what is not served."""
    parts = path.strip("/").split("/")
    if parts[0] == "api":
        group, version, rest = "", parts[1], parts[2:]
    else:
        group, version, rest = parts[1], parts[2], parts[3:]
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and not _is_subresource(kinds, group, version, rest):
        namespace, rest = rest[1], rest[2:]
        if not namespace:
            raise unknown()
    if not rest or "" in rest[:3]:
        raise unknown()
    kind = kinds.find(group, version, rest[0])
    if kind is None or (namespace and not kind.namespaced):
        raise unknown()
    name, subresource = (*rest[1:3], "", "")[:2]
    if subresource and subresource not in kind.subresources:
        raise unknown()
    tail = "/".join(rest[3:])
    if (tail and subresource != "proxy") or (name and kind.namespaced and not namespace):
        raise unknown()
    return Address(kind, namespace, name, subresource, tail)


def _is_subresource(kinds: KindTable, group: str, version: str, rest: list[str]) -> bool:
    """Whether `namespaces/NAME/X` is a namespace's own subresource."""
    kind = kinds.find(group, version, "namespaces")
    return len(rest) == 3 and kind is not None and rest[2] in kind.subresources


def unknown() -> problems.ApiError:
    """404 for a path that leads nowhere."""
    message = "the server could not find the requested resource"
    return problems.ApiError(404, "NotFound", message, {"name": ""})  # clients rely on details
