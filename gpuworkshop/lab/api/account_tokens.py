"""The tokens of ServiceAccounts: JSON web tokens with the claims of the real cluster's bound tokens.

A token is good until it expires, and only as long as its account, and what it is bound to, is still the
same object.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec

from gpuworkshop.lab.api.keys import key_at
from gpuworkshop.lab.api.kinds import SECRET, SERVICE_ACCOUNT, Kind
from gpuworkshop.lab.api.objects import (
    Object,
    meta,
    name_of,
    namespace_of,
    seconds_of,
    timestamp,
    uid_of,
)
from gpuworkshop.lab.api.problems import Cause, invalid
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.static_tokens import StaticTokens
from gpuworkshop.lab.api.token_requests import BINDABLE
from gpuworkshop.lab.api.users import User, account_name, account_user

KEY_FILE = "service-accounts.key"
ALGORITHM = "ES256"
CLAIM = "kubernetes.io"
DEFAULT_S, SHORTEST_S, LONGEST_S = 3600, 600, 2**32
# A kubelet asks for this duration, and expects that clients which never read the file again still work.
OF_A_POD_S, EXTENDED_S = 3607, 365 * 86_400
LEEWAY_S = 60  # for which a token outlives the end of what is being deleted
_TOKEN_REQUEST = Kind("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests")


class Tokens:
    """Issues and verifies bearer tokens, with what is in `folder`; `issuer` is the API's address."""

    def __init__(self, registry: Registry, folder: Path, issuer: str) -> None:
        self.issuer = issuer
        self._registry = registry
        self._static = StaticTokens(folder)
        self._key: ec.EllipticCurvePrivateKey = key_at(folder / KEY_FILE)

    def issue(
        self,
        account: Object,
        audiences: Sequence[str] | None = None,
        expiration_s: int | None = None,
        pod: Object | None = None,
    ) -> tuple[str, str]:
        """A token of a ServiceAccount, bound to a pod if one is given, and when it expires.

        A Secret or a Node will do as well as a pod. ApiError 422 for a duration that no token may have.
        """
        seconds = DEFAULT_S if expiration_s is None else expiration_s
        _check(name_of(account), seconds)
        now = int(self._registry.now())
        private: dict[str, Any] = {"namespace": namespace_of(account), "serviceaccount": _reference(account)}
        if pod is not None:
            private[pod["kind"].lower()] = _reference(pod)
        lasting = seconds
        if seconds == OF_A_POD_S and not audiences:
            lasting, private["warnafter"] = EXTENDED_S, now + seconds
        claims = {
            "aud": list(audiences or [self.issuer]),
            "exp": now + lasting,
            "iat": now,
            "iss": self.issuer,
            "jti": str(uuid.uuid4()),
            CLAIM: private,
            "nbf": now,
            "sub": account_name(namespace_of(account), name_of(account)),
        }
        return jwt.encode(claims, self._key, algorithm=ALGORITHM), timestamp(now + seconds)

    def user(self, token: str, audiences: Sequence[str] = ()) -> User | None:
        """Whose token it is; None when it is nobody's, or not meant for `audiences` (if none: the API)."""
        wanted = list(audiences) or [self.issuer]
        if self.issuer in wanted and (found := self._static.user(token)) is not None:
            return found
        claims = self._verified(token, wanted)
        return None if claims is None else self._account(claims)

    def audiences(self, token: str, asked: Sequence[str]) -> list[str]:
        """Those of the audiences `asked` for which a token was issued."""
        claims = self._verified(token, list(asked)) or {}
        return [audience for audience in asked if audience in claims.get("aud", ())]

    def _verified(self, token: str, audiences: list[str]) -> dict[str, Any] | None:
        """The claims of a token that is signed by this cluster, in its time, and for one of `audiences`."""
        required = ["exp", "iat", "iss", "aud", "sub", CLAIM]
        # The times are judged by the registry's clock.
        options = {"require": required, "verify_exp": False, "verify_nbf": False, "verify_iat": False}
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key.public_key(),
                algorithms=[ALGORITHM],
                audience=audiences,
                issuer=self.issuer,
                options=options,  # type: ignore[arg-type]  # a plain dict is what it takes
            )
        except jwt.InvalidTokenError:
            return None
        in_time = claims.get("nbf", claims["iat"]) <= self._registry.now() < claims["exp"]
        return claims if in_time else None

    def _account(self, claims: Mapping[str, Any]) -> User | None:
        private = claims[CLAIM]
        namespace, account = private["namespace"], private["serviceaccount"]
        bound = {kind: private[kind.singular] for kind in BINDABLE.values() if kind.singular in private}
        for kind, reference in {SERVICE_ACCOUNT: account, **bound}.items():
            if not self._is_there(kind, namespace, reference):
                return None
        extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}
        for kind, reference in bound.items():
            if kind is not SECRET:
                extra[f"authentication.kubernetes.io/{kind.singular}-name"] = [reference["name"]]
                extra[f"authentication.kubernetes.io/{kind.singular}-uid"] = [reference["uid"]]
        return account_user(namespace, account["name"], account["uid"], extra)

    def _is_there(self, kind: Kind, namespace: str, reference: Mapping[str, str]) -> bool:
        """Whether the very object still exists, and not just one of its name, or one that should be gone."""
        found = self._registry.find(kind, namespace, reference["name"])
        if found is None or uid_of(found) != reference["uid"]:
            return False
        ended = meta(found).get("deletionTimestamp")
        return ended is None or self._registry.now() <= seconds_of(ended) + LEEWAY_S


def _reference(obj: Object) -> dict[str, str]:
    return {"name": name_of(obj), "uid": uid_of(obj)}


def _check(name: str, seconds: int) -> None:
    field = "spec.expirationSeconds"
    if seconds < SHORTEST_S:
        why = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
    elif seconds > LONGEST_S:
        why = f"Invalid value: {seconds}: may not specify a duration larger than 2^32 seconds"
    else:
        return
    raise invalid(_TOKEN_REQUEST, name, [Cause("FieldValueInvalid", why, field)])
