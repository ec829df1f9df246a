"""Tokens that are asked for, and what they may be bound to."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
from access_lab import AccessLab
from own_api_server import new_registry, serving

from gpuworkshop.lab.api.account_tokens import CLAIM, LEEWAY_S
from gpuworkshop.lab.api.kinds import NODE, POD, SECRET, SERVICE_ACCOUNT
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.token_requests import bound_object

GONE = "00000000-0000-4000-8000-000000000000"


def a_pod(registry: Registry, account: str = "robot", **spec: Any) -> Object:
    body = {"containers": [{"name": "c", "image": "x"}], "serviceAccountName": account, **spec}
    return registry.create(POD, {"metadata": {"name": "web", "namespace": "team-a"}, "spec": body})


@pytest.fixture
def lab() -> AccessLab:
    """A pod of another account than robot, which has a token to itself."""
    found = AccessLab()
    metadata = {"name": "key", "namespace": "team-a"}
    found.registry.create(SECRET, {"metadata": metadata})
    found.registry.create(NODE, {"metadata": {"name": "n1"}})
    return found


@pytest.mark.parametrize("kind", ["Pod", "Secret", "Node"])
def test_a_token_may_end_with(lab: AccessLab, tmp_path: Path, kind: str) -> None:
    robot = lab.account("robot", "team-a")
    a_pod(lab.registry)
    name = {"Pod": "web", "Secret": "key", "Node": "n1"}[kind]
    reference = {"kind": kind, "apiVersion": "v1", "name": name}
    bound = bound_object(lab.registry, robot, reference)
    assert bound is not None
    uid = bound["metadata"]["uid"]
    assert bound_object(lab.registry, robot, {**reference, "uid": uid}) is bound
    tokens = lab.authenticator(tmp_path).tokens
    token, _ = tokens.issue(robot, pod=bound)
    claims = jwt.decode(token, options={"verify_signature": False})
    assert claims[CLAIM][kind.lower()] == {"name": name, "uid": uid}
    found = tokens.user(token)
    assert found is not None
    named = [key for key in found.extra if key.endswith("-name")]
    assert named == ([] if kind == "Secret" else [f"authentication.kubernetes.io/{kind.lower()}-name"])
    of_kind = {"Pod": POD, "Secret": SECRET, "Node": NODE}[kind]
    lab.registry.delete(of_kind, "" if kind == "Node" else "team-a", name, grace_period=0)
    assert tokens.user(token) is None


@pytest.mark.parametrize(
    ("reference", "code", "words"),
    [
        ({"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}, 400, "object of type /v1, Kind=ConfigMap"),
        ({"kind": "Pod", "apiVersion": "apps/v1", "name": "web"}, 400, "object of type apps/v1, Kind=Pod"),
        ({}, 400, "cannot bind token to object of type /, Kind="),
        ({"kind": "Pod", "apiVersion": "v1", "name": "gone"}, 404, 'pods "gone" not found'),
        ({"kind": "Pod", "apiVersion": "v1"}, 404, "not found"),
        ({"kind": "Secret", "apiVersion": "v1", "name": "gone"}, 404, 'secrets "gone" not found'),
        ({"kind": "Node", "apiVersion": "v1", "name": "gone"}, 404, 'nodes "gone" not found'),
        (
            {"kind": "Pod", "apiVersion": "v1", "name": "web"},
            400,
            'serviceaccount "robot" to pod running with different serviceaccount name.',
        ),
        (
            {"kind": "Secret", "apiVersion": "v1", "name": "key", "uid": GONE},
            409,
            f'Operation cannot be fulfilled on Secret "key": the UID in the bound object reference ({GONE}) '
            "does not match the UID in record. The object might have been deleted and then recreated",
        ),
    ],
)
def test_what_it_may_not_be_bound_to(
    lab: AccessLab, reference: dict[str, str], code: int, words: str
) -> None:
    robot = lab.account("robot", "team-a")
    a_pod(lab.registry, "other")
    with pytest.raises(ApiError) as caught:
        bound_object(lab.registry, robot, reference)
    assert caught.value.code == code
    assert words in caught.value.message


def test_without_a_reference_it_is_bound_to_nothing(lab: AccessLab) -> None:
    assert bound_object(lab.registry, lab.account("robot", "team-a"), None) is None


def test_a_pod_of_another_namespace_is_not_there(lab: AccessLab) -> None:
    a_pod(lab.registry)
    with pytest.raises(ApiError, match="not found"):
        bound_object(lab.registry, lab.account("robot", "team-b"), {"kind": "Pod", "name": "web"})


def test_a_token_outlives_the_deletion_of_its_pod_by_a_minute(lab: AccessLab, tmp_path: Path) -> None:
    robot = lab.account("robot", "team-a")
    pod = a_pod(lab.registry, nodeName="n1")
    tokens = lab.authenticator(tmp_path).tokens
    token, _ = tokens.issue(robot, pod=pod)
    lab.registry.delete(POD, "team-a", "web", grace_period=30)
    lab.clock.now += 30 + LEEWAY_S
    assert tokens.user(token) is not None
    lab.clock.now += 1
    assert tokens.user(token) is None


def test_over_http(tmp_path: Path) -> None:
    async def scenario() -> None:
        registry = new_registry()
        for name in ("robot", "other"):
            registry.create(SERVICE_ACCOUNT, {"metadata": {"name": name, "namespace": "default"}})
        spec = {"containers": [{"name": "c", "image": "x"}], "serviceAccountName": "robot"}
        metadata = {"name": "web", "namespace": "default"}
        registry.create(POD, {"metadata": metadata, "spec": spec})
        async with serving(tmp_path, registry) as server:
            assert await asked(server.session, "robot", "web") == (201, "TokenRequest")
            assert await asked(server.session, "other", "web") == (400, "Status")
            assert await asked(server.session, "robot", "gone") == (404, "Status")
            assert await asked(server.session, "robot", "web", uid=GONE) == (409, "Status")

    asyncio.run(scenario())


async def asked(session: aiohttp.ClientSession, account: str, pod: str, **more: str) -> tuple[int, str]:
    path = f"/api/v1/namespaces/default/serviceaccounts/{account}/token"
    body = {"spec": {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": pod, **more}}}
    async with session.post(path, json=body) as answer:
        return answer.status, (await answer.json())["kind"]
