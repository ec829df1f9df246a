"""A registry with accounts, roles and tokens, and a clock of the test's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuworkshop.lab.api.account_tokens import Tokens
from gpuworkshop.lab.api.authentication import Authenticator
from gpuworkshop.lab.api.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    NAMESPACE,
    ROLE,
    ROLE_BINDING,
    SERVICE_ACCOUNT,
)
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.rbac import Authorizer, default_roles
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.store import Store
from gpuworkshop.lab.api.users import AUTHENTICATED, User

START = 1_900_000_000.0
ISSUER = "https://127.0.0.1:6443"
RBAC = "rbac.authorization.k8s.io"
NAMESPACES = ("default", "team-a", "team-b")


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = START

    def __call__(self) -> float:
        return self.now


@dataclass
class AccessLab:
    """The registry of a fresh cluster."""

    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.registry = Registry(Store(":memory:"), clock=self.clock)
        for name in NAMESPACES:
            self.registry.create(NAMESPACE, {"metadata": {"name": name}})
        for role in default_roles():
            kind = self.registry.kinds.of(role["apiVersion"], role["kind"])
            assert kind is not None
            self.registry.create(kind, role)
        self.authorizer = Authorizer(self.registry)

    def authenticator(self, folder: Path) -> Authenticator:
        return Authenticator(Tokens(self.registry, folder, ISSUER))

    def account(self, name: str, namespace: str = "default") -> Object:
        return self.registry.create(SERVICE_ACCOUNT, {"metadata": {"name": name, "namespace": namespace}})

    def role(self, name: str, rules: Sequence[dict[str, Any]], namespace: str = "", **more: Any) -> Object:
        kind = ROLE if namespace else CLUSTER_ROLE
        metadata = {
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            **more.pop("metadata", {}),
        }
        return self.registry.create(kind, {"metadata": metadata, "rules": list(rules), **more})

    def bind(
        self, role: str, subject: dict[str, str], namespace: str = "", kind: str = "ClusterRole"
    ) -> Object:
        bound = binding(role, subject, namespace, kind)
        return self.registry.create(ROLE_BINDING if namespace else CLUSTER_ROLE_BINDING, bound)

    def may(
        self, user: User, verb: str, resource: str, namespace: str = "", name: str = "", group: str = ""
    ) -> bool:
        return self.authorizer.allowed(user, verb, group, resource, namespace, name)


def binding(role: str, subject: dict[str, str], namespace: str = "", kind: str = "ClusterRole") -> Object:
    metadata = {"name": f"{role.replace(':', '-')}-{subject['name'].replace(':', '-')}"}
    if namespace:
        metadata["namespace"] = namespace
    reference = {"apiGroup": RBAC, "kind": kind, "name": role}
    return {"metadata": metadata, "roleRef": reference, "subjects": [subject]}


def person(name: str, *groups: str) -> User:
    return User(name, (*groups, AUTHENTICATED))


def user_subject(name: str) -> dict[str, str]:
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def group_subject(name: str) -> dict[str, str]:
    return {"apiGroup": RBAC, "kind": "Group", "name": name}


def account_subject(name: str, namespace: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
