"""Who asks, by the headers of a request: a bearer token, and whom that user wants to be taken for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from multidict import MultiMapping

from gpuworkshop.lab.api.account_tokens import Tokens
from gpuworkshop.lab.api.problems import ApiError, bad_request
from gpuworkshop.lab.api.static_tokens import admin_token
from gpuworkshop.lab.api.users import ANONYMOUS, AUTHENTICATED, User, account_of, account_user

__all__ = ["ANONYMOUS", "Authenticator", "Impersonation", "Tokens", "User", "admin_token"]

AS_USER, AS_GROUP, AS_UID = "Impersonate-User", "Impersonate-Group", "Impersonate-Uid"
AS_EXTRA = "impersonate-extra-"
REVIEWS = "authentication.k8s.io"


class Need(NamedTuple):
    """A right to impersonate: the arguments of `Authorizer.allowed` after the user and the verb."""

    group: str
    resource: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Impersonation:
    """The user that somebody wants to be taken for, and the groups that were asked for by name."""

    user: User
    groups: tuple[str, ...] = ()

    def needs(self) -> Iterator[Need]:
        """The rights that it takes, each for the verb `impersonate`."""
        account = account_of(self.user.name)
        if account is None:
            yield Need("", "users", "", self.user.name)
        else:
            yield Need("", "serviceaccounts", *account)
        for group in self.groups:
            yield Need("", "groups", "", group)
        if self.user.uid:
            yield Need(REVIEWS, "uids", "", self.user.uid)
        for key, values in self.user.extra.items():
            for value in values:
                yield Need(REVIEWS, f"userextras/{key}", "", value)


class Authenticator:
    """Finds out who asks."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens

    def user(self, headers: Mapping[str, str]) -> User:
        """The user whose token the request carries: ANONYMOUS for none, ApiError 401 for a wrong one."""
        scheme, _, token = headers.get("Authorization", "").strip().partition(" ")
        if not scheme:
            return ANONYMOUS
        found = self.tokens.user(token.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return found

    def impersonated(self, headers: MultiMapping[str]) -> Impersonation | None:
        """Whom the request is to be taken for, if it says so; whether it may is the authorizer's to say."""
        name, groups = headers.get(AS_USER, ""), tuple(headers.getall(AS_GROUP, []))
        uid, extra = headers.get(AS_UID, ""), _extra(headers)
        if not name:
            if groups or uid or extra:
                raise bad_request("requested groups, a uid or extra values without impersonating a user")
            return None
        if name == ANONYMOUS.name:
            return Impersonation(User(name, groups or ANONYMOUS.groups, uid, extra), groups)
        account = account_of(name)
        if groups or account is None:
            all_groups = tuple(dict.fromkeys((*groups, AUTHENTICATED)))
        else:
            all_groups = account_user(*account).groups
        return Impersonation(User(name, all_groups, uid, extra), groups)


def _extra(headers: MultiMapping[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for header, value in headers.items():
        if header.lower().startswith(AS_EXTRA):
            found.setdefault(unquote(header.lower().removeprefix(AS_EXTRA)), []).append(value)
    return found
