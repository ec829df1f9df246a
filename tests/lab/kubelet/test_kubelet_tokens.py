"""Tokens of service accounts: bound to their pod, kept while they are good, renewed in its files."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from kubelet_lab import KubeletLab, in_lab, pause, shell

from gpuworkshop.lab.api.kinds import POD, SERVICE_ACCOUNT
from gpuworkshop.lab.api.objects import Object, timestamp
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.store import Store
from gpuworkshop.lab.kubelet import manager
from gpuworkshop.lab.kubelet.tokens import OLDEST_S, TokenCache

ACCOUNT: Object = {"metadata": {"name": "sa", "uid": "account-1"}}
POD_ONE: Object = {"metadata": {"name": "one", "uid": "pod-1"}}
POD_TWO: Object = {"metadata": {"name": "two", "uid": "pod-2"}}


class Clock:
    """Time that passes when the test says so."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Numbered:
    """Issues tokens with a number each, good for as long as is asked."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.issued = clock, 0

    def issue(
        self,
        account: Object,
        audiences: Sequence[str] | None = None,
        expiration_s: int | None = None,
        pod: Object | None = None,
    ) -> tuple[str, str]:
        assert pod is not None
        self.issued += 1
        return f"{pod['metadata']['name']}-{self.issued}", timestamp(self.clock.now + (expiration_s or 3600))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(clock: Clock) -> TokenCache:
    return TokenCache(Registry(Store(":memory:"), clock=clock), Numbered(clock))


def test_token_is_kept_until_four_fifths_of_its_time(cache: TokenCache, clock: Clock) -> None:
    def now() -> str:
        return cache.token(ACCOUNT, POD_ONE, "", 3600)

    assert now() == "one-1"
    clock.now += 2879
    assert now() == "one-1"
    clock.now += 2
    assert now() == "one-2"


def test_long_token_is_renewed_once_a_day(cache: TokenCache, clock: Clock) -> None:
    first = cache.token(ACCOUNT, POD_ONE, "", 10**7)
    clock.now += OLDEST_S - 1
    assert cache.token(ACCOUNT, POD_ONE, "", 10**7) == first
    clock.now += 2
    assert cache.token(ACCOUNT, POD_ONE, "", 10**7) != first


def test_each_pod_audience_time_and_account_has_its_own(cache: TokenCache) -> None:
    other: Object = {"metadata": {"name": "sa", "uid": "account-2"}}  # made anew under the same name
    asked = [
        (ACCOUNT, POD_ONE, "", 3600),
        (ACCOUNT, POD_TWO, "", 3600),
        (ACCOUNT, POD_ONE, "vault", 3600),
        (ACCOUNT, POD_ONE, "", 7200),
        (other, POD_ONE, "", 3600),
    ]
    assert len({cache.token(*each) for each in asked}) == len(asked)
    assert len({cache.token(*each) for each in asked}) == len(asked)


def test_pod_that_is_gone_is_forgotten(cache: TokenCache) -> None:
    first = cache.token(ACCOUNT, POD_ONE, "", 3600)
    cache.forget("pod-1")
    cache.forget("pod-1")
    assert cache.token(ACCOUNT, POD_ONE, "", 3600) != first


def _volume(*more: Object) -> Object:
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
    return {"name": "api", "projected": {"sources": [token, *more]}}


def test_running_pod_gets_the_new_token_in_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manager, "TOKEN_RENEWAL_S", 0.05)
    clock = Clock()
    monkeypatch.setattr("kubelet_lab.FakeTokens", lambda: Numbered(clock))

    async def test(lab: KubeletLab) -> None:
        lab.registry.now = clock
        lab.put(SERVICE_ACCOUNT, "default")
        mounts = [{"name": "api", "mountPath": "/run/secrets"}]
        wait = "until grep -q app-2 /run/secrets/token; do sleep 0.02; done"
        script = f"cat /run/secrets/token; echo; {wait}; echo new"
        lab.pod("app", shell(script, volumeMounts=mounts), volumes=[_volume()], restartPolicy="Never")
        await lab.logged("app", b"app-1\n")
        clock.now += 3000
        await lab.phase("app", "Succeeded")
        assert await lab.log("app") == b"app-1\nnew\n"
        (token,) = (lab.state / "lab" / "pods").glob("*/volumes/api/token")
        assert token.stat().st_mode & 0o777 == 0o600

    in_lab(test)


def test_pause_asks_for_no_token_but_for_its_account() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("web", pause(), volumes=[_volume()])
        await lab.until(lambda: "FailedMount" in lab.events("web"))
        assert 'serviceaccounts "default" not found' in lab.events("web")["FailedMount"]
        lab.put(SERVICE_ACCOUNT, "default")
        lab.registry.delete(POD, "default", "web", grace_period=0)
        lab.pod("later", pause(), volumes=[_volume()])
        await lab.ready("later")
        assert not list(Path(lab.state / "lab" / "pods").glob("*/volumes"))

    in_lab(test)


def test_token_outlives_no_pod() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.put(SERVICE_ACCOUNT, "default")
        mounts = [{"name": "api", "mountPath": "/run/secrets"}]
        lab.pod("app", shell("sleep 60", volumeMounts=mounts), volumes=[_volume()])
        await lab.ready("app")
        assert list((lab.state / "lab" / "pods").glob("*/volumes/api/token"))
        lab.registry.delete(POD, "default", "app", grace_period=0)
        await lab.gone("app")
        await asyncio.wait_for(lab.kubelets.stop(), 10)
        assert not list((lab.state / "lab" / "pods").glob("*/volumes/api/token"))

    in_lab(test)
