"""Authorisation by roles and bindings: who may do what, and the words for who may not.

It is asked on every request, so roles and bindings are compiled into an index, by namespace and subject; the
index is dropped when one of them changes. Aggregated ClusterRoles are put together then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpuworkshop.lab.api.changes import Change
from gpuworkshop.lab.api.default_roles import default_roles
from gpuworkshop.lab.api.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING
from gpuworkshop.lab.api.object_selectors import selects
from gpuworkshop.lab.api.objects import Object, labels_of, name_of, namespace_of
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.rbac_rules import EVERYTHING, Rule, rules_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.users import MASTERS, User, account_name

__all__ = ["Authorizer", "default_roles"]

KINDS = {kind.resource: kind for kind in (ROLE, CLUSTER_ROLE, ROLE_BINDING, CLUSTER_ROLE_BINDING)}


@dataclass(frozen=True)
class Grant:
    """The rules that one binding gives to a subject, and how that is told."""

    rules: tuple[Rule, ...]
    reason: str


# By namespace ("" for the whole cluster) and subject ("User" or "Group", and its name).
Index = dict[tuple[str, str, str], list[Grant]]


class Authorizer:
    """Says what users may do by the roles and bindings in a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._index: Index | None = None
        registry.store.log.listeners.add(self._hear)

    def allowed(self, user: User, verb: str, group: str, resource: str, namespace: str, name: str) -> bool:
        """Whether a user may do it; `resource` is `pods`, or `pods/log`."""
        return self.reason(user, verb, group, resource, namespace, name) is not None

    def reason(
        self, user: User, verb: str, group: str, resource: str, namespace: str, name: str
    ) -> str | None:
        """Why a user may do it: which binding says so. None if it may not."""
        if MASTERS in user.groups:
            return ""
        namespace = _namespace(group, resource, namespace, name)
        for grant in self._grants(user, namespace):
            if any(rule.allows(verb, group, resource, name) for rule in grant.rules):
                return grant.reason
        return None

    def allowed_url(self, user: User, verb: str, path: str) -> bool:
        """Whether a user may do it at a path that names no resource; `verb` is the HTTP method."""
        if MASTERS in user.groups:
            return True
        return any(rule.allows_url(verb, path) for grant in self._grants(user, "") for rule in grant.rules)

    def rules_for(self, user: User, namespace: str) -> list[Rule]:
        """All that a user may do in a namespace; "" is what it may do in the whole cluster."""
        granted = [rule for grant in self._grants(user, namespace) for rule in grant.rules]
        return [*(EVERYTHING if MASTERS in user.groups else ()), *granted]

    def role_rules(self, reference: Mapping[str, Any], namespace: str) -> tuple[Rule, ...]:
        """The rules of the role that a binding's roleRef names; none if it does not exist."""
        kind, name = reference.get("kind"), reference.get("name", "")
        if kind == CLUSTER_ROLE.kind:
            return self._cluster_rules(name, frozenset())
        role = self._registry.find(ROLE, namespace, name) if kind == ROLE.kind else None
        return () if role is None else rules_of(role.get("rules"))

    def has_role(self, reference: Mapping[str, Any], namespace: str) -> bool:
        """Whether the role that a binding's roleRef names exists."""
        kind = ROLE if reference.get("kind") == ROLE.kind else CLUSTER_ROLE
        return self._registry.find(kind, namespace, reference.get("name", "")) is not None

    def refusal(
        self, user: User, verb: str, group: str, resource: str, namespace: str, name: str
    ) -> ApiError:
        """403, in the words of the real API server."""
        namespace = _namespace(group, resource, namespace, name)
        plural = resource.partition("/")[0]
        where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
        what = f"{plural}.{group}" if group else plural
        named = f' "{name}"' if name else ""
        message = (
            f'{what}{named} is forbidden: User "{user.name}" cannot {verb} resource "{resource}" '
            f'in API group "{group}" {where}'
        )
        details = {"name": name, "group": group, "kind": plural}
        return ApiError(403, "Forbidden", message, {key: value for key, value in details.items() if value})

    def url_refusal(self, user: User, verb: str, path: str) -> ApiError:
        """403 for a path that names no resource."""
        return ApiError(403, "Forbidden", f'forbidden: User "{user.name}" cannot {verb} path "{path}"')

    def _grants(self, user: User, namespace: str) -> Iterator[Grant]:
        index = self._index = self._compiled() if self._index is None else self._index
        subjects = (("User", user.name), *(("Group", group) for group in user.groups))
        for where in dict.fromkeys(("", namespace)):
            for kind, name in subjects:
                yield from index.get((where, kind, name), ())

    def _hear(self, change: Change) -> None:
        if change.resource in KINDS:
            self._index = None

    def _compiled(self) -> Index:
        index: Index = {}
        for kind in (CLUSTER_ROLE_BINDING, ROLE_BINDING):
            for binding in self._registry.list(kind):
                namespace, role = namespace_of(binding), binding.get("roleRef") or {}
                rules = self.role_rules(role, namespace)
                for subject in binding.get("subjects") or () if rules else ():
                    reason = (
                        f'RBAC: allowed by {kind.kind} "{_told(name_of(binding), namespace)}" of '
                        f'{role["kind"]} "{role["name"]}" to {subject.get("kind")} '
                        f'"{_told(subject.get("name", ""), subject.get("namespace"))}"'
                    )
                    key = (namespace, *_subject(subject, namespace))
                    index.setdefault(key, []).append(Grant(rules, reason))
        return index

    def _cluster_rules(self, name: str, within: frozenset[str]) -> tuple[Rule, ...]:
        """The rules of a ClusterRole; an aggregated one has those of all roles that its selectors select."""
        role = self._registry.find(CLUSTER_ROLE, "", name)
        if role is None or name in within:
            return ()
        selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if not selectors:
            return rules_of(role.get("rules"))
        rules: dict[Rule, None] = {}
        for other in self._registry.list(CLUSTER_ROLE):
            if any(_selects(selector, other) for selector in selectors):
                rules |= dict.fromkeys(self._cluster_rules(name_of(other), within | {name}))
        return tuple(rules)


def _selects(selector: Mapping[str, Any], role: Object) -> bool:
    try:
        return selects(selector, labels_of(role))
    except ApiError:  # a selector without sense selects nothing
        return False


def _subject(subject: Mapping[str, Any], namespace: str) -> tuple[str, str]:
    """The kind and name under which a binding's subject asks: a ServiceAccount is a user."""
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind == "ServiceAccount":
        return "User", account_name(subject.get("namespace") or namespace, name)
    return kind, name


def _told(name: str, namespace: str | None) -> str:
    return f"{name}/{namespace}" if namespace else name


def _namespace(group: str, resource: str, namespace: str, name: str) -> str:
    """The namespace that counts: a Namespace itself is within that of its name."""
    if not group and name and resource.partition("/")[0] == "namespaces":
        return name
    return namespace
