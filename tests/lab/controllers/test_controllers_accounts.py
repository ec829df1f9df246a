"""What namespaces are given, and the Secrets that ask for a token."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from functools import partial

import controllers_lab as lab

from gpuworkshop.lab.api.kinds import CONFIG_MAP, NAMESPACE, SECRET, SERVICE_ACCOUNT
from gpuworkshop.lab.api.objects import Object, annotations_of, name_of, uid_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.accounts import AccountController, TokenController

CA = "-----BEGIN CERTIFICATE-----\n"
TYPE = "kubernetes.io/service-account-token"


def token_of(account: Object) -> str:
    return f"token of {name_of(account)}"


def rehearse(registry: Registry, scenario: Callable[[], Awaitable[None]]) -> None:
    lab.rehearse(registry, [AccountController(CA), TokenController(token_of, CA)], scenario)


def root_ca(registry: Registry, namespace: str) -> Object | None:
    return registry.find(CONFIG_MAP, namespace, "kube-root-ca.crt")


def secret(registry: Registry, account: str) -> None:
    metadata = {
        "name": "access",
        "namespace": "default",
        "annotations": {"kubernetes.io/service-account.name": account},
    }
    registry.create(SECRET, {"metadata": metadata, "type": TYPE, "data": {"own": "a2VwdA=="}})


def test_every_namespace_has_an_account_and_the_ca() -> None:
    registry = lab.new_registry()

    async def scenario() -> None:
        registry.create(NAMESPACE, {"metadata": {"name": "team"}})
        for namespace in ("default", "team"):
            await lab.until(registry, partial(root_ca, registry, namespace))
            assert registry.find(SERVICE_ACCOUNT, namespace, "default") is not None
        assert registry.get(CONFIG_MAP, "team", "kube-root-ca.crt")["data"] == {"ca.crt": CA}

    rehearse(registry, scenario)


def test_what_is_deleted_or_changed_comes_back() -> None:
    registry = lab.new_registry()

    async def scenario() -> None:
        await lab.until(registry, lambda: root_ca(registry, "default"))
        before = uid_of(registry.get(SERVICE_ACCOUNT, "default", "default"))
        registry.delete(SERVICE_ACCOUNT, "default", "default")
        registry.delete(CONFIG_MAP, "default", "kube-root-ca.crt")
        await lab.until(registry, lambda: registry.find(SERVICE_ACCOUNT, "default", "default"))
        assert uid_of(registry.get(SERVICE_ACCOUNT, "default", "default")) != before
        await lab.until(registry, lambda: root_ca(registry, "default"))
        registry.modify(
            CONFIG_MAP, "default", "kube-root-ca.crt", lambda live: live.update(data={"ca.crt": "old"})
        )
        await lab.until(registry, lambda: (root_ca(registry, "default") or {})["data"] == {"ca.crt": CA})

    rehearse(registry, scenario)


def test_a_secret_is_filled_with_a_token() -> None:
    registry = lab.new_registry()

    async def scenario() -> None:
        secret(registry, "default")
        await lab.until(registry, lambda: "token" in registry.get(SECRET, "default", "access")["data"])

    rehearse(registry, scenario)
    found = registry.get(SECRET, "default", "access")
    read = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
    assert read == {"own": "kept", "token": "token of default", "ca.crt": CA, "namespace": "default"}
    account = registry.get(SERVICE_ACCOUNT, "default", "default")
    assert annotations_of(found)["kubernetes.io/service-account.uid"] == uid_of(account)


def test_a_secret_goes_with_its_account() -> None:
    registry = lab.new_registry()
    registry.create(SERVICE_ACCOUNT, {"metadata": {"name": "robot", "namespace": "default"}})

    async def scenario() -> None:
        secret(registry, "robot")
        await lab.until(registry, lambda: "token" in registry.get(SECRET, "default", "access")["data"])
        registry.delete(SERVICE_ACCOUNT, "default", "robot")
        await lab.until(registry, lambda: registry.find(SECRET, "default", "access") is None)

    rehearse(registry, scenario)


def test_a_secret_of_an_account_that_is_not_there_is_deleted() -> None:
    registry = lab.new_registry()

    async def scenario() -> None:
        secret(registry, "nobody")
        await lab.until(registry, lambda: registry.find(SECRET, "default", "access") is None)

    rehearse(registry, scenario)
