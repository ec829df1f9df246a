"""Who asks: a user with groups. A ServiceAccount is a user too, whose name says its namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

AUTHENTICATED, UNAUTHENTICATED, MASTERS = "system:authenticated", "system:unauthenticated", "system:masters"
ACCOUNTS = "system:serviceaccounts"
ACCOUNT_PREFIX = "system:serviceaccount:"


@dataclass(frozen=True)
class User:
    """An authenticated user, and what is known of it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict, hash=False)

    def info(self) -> dict[str, Any]:
        """The UserInfo of a review."""
        found = {
            "username": self.name,
            "uid": self.uid,
            "groups": list(self.groups),
            "extra": {key: list(values) for key, values in self.extra.items()},
        }
        return {key: value for key, value in found.items() if value}


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
ADMIN = User("kubernetes-admin", (MASTERS, AUTHENTICATED))


def account_user(
    namespace: str, name: str, uid: str = "", extra: Mapping[str, Sequence[str]] | None = None
) -> User:
    """The user that a ServiceAccount is."""
    groups = (ACCOUNTS, f"{ACCOUNTS}:{namespace}", AUTHENTICATED)
    return User(account_name(namespace, name), groups, uid, extra or {})


def account_name(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount."""
    return f"{ACCOUNT_PREFIX}{namespace}:{name}"


def account_of(user: str) -> tuple[str, str] | None:
    """The namespace and name of the ServiceAccount that a user name is, if it is one."""
    namespace, colon, name = user.removeprefix(ACCOUNT_PREFIX).partition(":")
    if not user.startswith(ACCOUNT_PREFIX) or not (namespace and colon and name):
        return None
    return namespace, name
