"""What every namespace is given: a ServiceAccount, the CA's certificate, and tokens that are asked for."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping

from gpuworkshop.lab.api.kinds import CONFIG_MAP, NAMESPACE, SECRET, SERVICE_ACCOUNT, Kind
from gpuworkshop.lab.api.objects import (
    Object,
    annotations_of,
    is_deleted,
    meta,
    name_of,
    namespace_of,
    uid_of,
)
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys

TOKEN_TYPE = "kubernetes.io/service-account-token"  # noqa: S105  the type of a Secret
ACCOUNT_NAME, ACCOUNT_UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
ROOT_CA = "kube-root-ca.crt"
ABOUT_ROOT_CA = "The CA certificate with which pods verify the API server of this cluster."
MakeToken = Callable[[Object], str]  # makes a token of a ServiceAccount, for good


def _namespace(_: Registry, obj: Object) -> Iterable[Key]:
    yield ((namespace_of(obj) or name_of(obj)),)


def _root_ca(_: Registry, obj: Object) -> Iterable[Key]:
    if name_of(obj) == ROOT_CA:
        yield (namespace_of(obj),)


class AccountController(Controller):
    """Keeps the ServiceAccount `default` and the ConfigMap of the CA in every namespace."""

    name = "serviceaccount-controller"
    watches: Mapping[Kind, Keys] = {NAMESPACE: _namespace, SERVICE_ACCOUNT: _namespace, CONFIG_MAP: _root_ca}

    def __init__(self, ca: str) -> None:
        self._ca = ca

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Make what is missing in one namespace."""
        namespace = registry.find(NAMESPACE, "", key[0])
        if namespace is None or is_deleted(namespace):
            return None
        if registry.find(SERVICE_ACCOUNT, key[0], "default") is None:
            registry.create(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": key[0]}})
        data = {"ca.crt": self._ca}
        live = registry.find(CONFIG_MAP, key[0], ROOT_CA)
        if live is None:
            metadata = {"name": ROOT_CA, "namespace": key[0]}
            notes = {"kubernetes.io/description": ABOUT_ROOT_CA}
            registry.create(CONFIG_MAP, {"metadata": {**metadata, "annotations": notes}, "data": data})
        elif live.get("data") != data:
            registry.modify(CONFIG_MAP, key[0], ROOT_CA, lambda new: new.update(data=data))
        return None


def _token_secrets(registry: Registry, account: Object) -> Iterable[Key]:
    for secret in index_of(registry).within(SECRET, namespace_of(account)):
        if secret.get("type") == TOKEN_TYPE and annotations_of(secret).get(ACCOUNT_NAME) == name_of(account):
            yield namespace_of(secret), name_of(secret)


def _token_secret(_: Registry, secret: Object) -> Iterable[Key]:
    if secret.get("type") == TOKEN_TYPE:
        yield namespace_of(secret), name_of(secret)


class TokenController(Controller):
    """Fills Secrets that ask for a ServiceAccount's token, and deletes them with the account."""

    name = "serviceaccount-token-controller"
    watches: Mapping[Kind, Keys] = {SECRET: _token_secret, SERVICE_ACCOUNT: _token_secrets}

    def __init__(self, make_token: MakeToken, ca: str) -> None:
        self._make_token = make_token
        self._ca = ca

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Fill one Secret, or delete it."""
        secret = registry.find(SECRET, *key)
        if secret is None or is_deleted(secret):
            return None
        account = registry.find(SERVICE_ACCOUNT, key[0], annotations_of(secret).get(ACCOUNT_NAME, ""))
        known = annotations_of(secret).get(ACCOUNT_UID)
        if account is None or known not in (None, uid_of(account)):
            registry.delete(SECRET, *key, uid=uid_of(secret))
            return None
        data = {"ca.crt": _encoded(self._ca), "namespace": _encoded(key[0])}
        data = {**(secret.get("data") or {}), **data}
        if not data.get("token"):
            data["token"] = _encoded(self._make_token(account))

        def change(live: Object) -> None:
            live["data"] = data
            meta(live).setdefault("annotations", {})[ACCOUNT_UID] = uid_of(account)

        registry.modify(SECRET, key[0], key[1], change)
        return None


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
