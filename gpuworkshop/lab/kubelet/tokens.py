"""The tokens of pods' service accounts: bound to the pod, and renewed long before they expire.

As on a real kubelet: a token is kept until four fifths of its time have passed, or it is a day old.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuworkshop.lab.api.objects import Object, seconds_of, uid_of
from gpuworkshop.lab.api.registry import Registry

KEPT_SHARE, OLDEST_S = 0.8, 86_400.0


class TokenIssuer(Protocol):
    """Issues tokens for service accounts, as the API server does."""

    def issue(
        self,
        account: Object,
        audiences: Sequence[str] | None = None,
        expiration_s: int | None = None,
        pod: Object | None = None,
    ) -> tuple[str, str]:
        """A token, bound to a pod if one is given, and when it expires."""


@dataclass(frozen=True)
class _Kept:
    token: str
    renewed_at: float


class TokenCache:
    """The tokens that pods have now; new ones come from `issuer`, by the clock of `registry`."""

    def __init__(self, registry: Registry, issuer: TokenIssuer) -> None:
        self._registry, self._issuer = registry, issuer
        self._kept: dict[str, dict[tuple[str, str, int | None], _Kept]] = {}

    def token(self, account: Object, pod: Object, audience: str, expiration_s: int | None) -> str:
        """The pod's token for an audience ("": the API); a new one if it is time for that."""
        of_pod = self._kept.setdefault(uid_of(pod), {})
        key, now = (uid_of(account), audience, expiration_s), self._registry.now()
        kept = of_pod.get(key)
        if kept is None or now >= kept.renewed_at:
            audiences = [audience] if audience else None
            token, expires = self._issuer.issue(account, audiences, expiration_s, pod)
            kept = of_pod[key] = _Kept(token, now + min(KEPT_SHARE * (seconds_of(expires) - now), OLDEST_S))
        return kept.token

    def forget(self, pod_uid: str) -> None:
        """The pod is gone."""
        self._kept.pop(pod_uid, None)
