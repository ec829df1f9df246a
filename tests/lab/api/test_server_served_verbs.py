"""What the server lets be done with a kind: verbs that it lacks, and what a websocket asks of its user."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from own_api_server import OwnServer, serving

from gpuworkshop.lab.api import static_tokens
from gpuworkshop.lab.api.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ENDPOINTS, POD, SERVICE
from gpuworkshop.lab.api.objects import Object

RBAC = "rbac.authorization.k8s.io"
PODS = "/api/v1/namespaces/default/pods"


def on_a_server(tmp_path: Path, scenario: Callable[[OwnServer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with serving(tmp_path) as server:
            await scenario(server)

    asyncio.run(run())


async def asked(session: aiohttp.ClientSession, method: str, path: str, **more: Any) -> tuple[int, Any]:
    async with session.request(method, path, **more) as answer:
        return answer.status, await answer.json()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/api/v1/namespaces"),
        ("POST", "/apis/batch/v1/namespaces/default/cronjobs"),
        ("POST", "/api/v1/namespaces/default/replicationcontrollers"),
        ("DELETE", "/apis/batch/v1/namespaces/default/cronjobs"),
        ("PATCH", "/apis/batch/v1/namespaces/default/cronjobs/x"),
    ],
)
def test_a_verb_that_a_kind_lacks(tmp_path: Path, method: str, path: str) -> None:
    async def scenario(server: OwnServer) -> None:
        code, status = await asked(server.session, method, path, json={})
        assert (code, status["reason"]) == (405, "MethodNotAllowed")
        assert (await asked(server.session, "GET", "/api/v1/namespaces/default"))[0] == 200

    on_a_server(tmp_path, scenario)


def test_what_pruning_lists_is_listed(tmp_path: Path) -> None:
    async def scenario(server: OwnServer) -> None:
        for path in ("/apis/batch/v1/namespaces/default/cronjobs", "/api/v1/replicationcontrollers"):
            code, found = await asked(server.session, "GET", path)
            assert (code, found["items"]) == (200, [])
        _, core = await asked(server.session, "GET", "/api/v1")
        verbs = {entry["name"]: entry["verbs"] for entry in core["resources"]}
        assert verbs["replicationcontrollers"] == ["get", "list", "watch"]
        assert "deletecollection" not in verbs["namespaces"]
        assert "deletecollection" in verbs["pods"]

    on_a_server(tmp_path, scenario)


def a_user(server: OwnServer, folder: Path, *verbs: str) -> str:
    """The token of a user who has these verbs on the streams of pods."""
    resources = ["pods/exec", "pods/attach", "pods/portforward"]
    rule = {"apiGroups": [""], "resources": resources, "verbs": list(verbs)}
    server.registry.create(CLUSTER_ROLE, {"metadata": {"name": "streams"}, "rules": [rule]})
    subject = {"apiGroup": RBAC, "kind": "User", "name": "ann"}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "streams"}
    bound = {"metadata": {"name": "streams"}, "roleRef": reference, "subjects": [subject]}
    server.registry.create(CLUSTER_ROLE_BINDING, bound)
    return static_tokens.add_user(folder, "ann")


def a_pod(server: OwnServer) -> Object:
    spec = {"containers": [{"name": "c", "image": "x"}]}
    return server.registry.create(POD, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})


@pytest.mark.parametrize("name", ["exec", "attach", "portforward"])
@pytest.mark.parametrize(
    ("verbs", "missing"), [(("get",), "create"), (("create",), "get"), (("get", "create"), "")]
)
def test_a_websocket_takes_the_right_to_create(
    tmp_path: Path, name: str, verbs: tuple[str, ...], missing: str
) -> None:
    async def scenario(server: OwnServer) -> None:
        a_pod(server)
        headers = {"Authorization": f"Bearer {a_user(server, tmp_path, *verbs)}"}
        code, status = await asked(server.session, "GET", f"{PODS}/web/{name}?command=ls", headers=headers)
        if missing:
            said = f'User "ann" cannot {missing} resource "pods/{name}" in API group "" in the namespace'
            assert code == 403
            assert said in status["message"]
        else:
            assert code == 400, "no websocket, but allowed"

    on_a_server(tmp_path, scenario)


def test_a_proxy_leads_to_pods_alone(tmp_path: Path) -> None:
    async def served(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def scenario(server: OwnServer) -> None:
        app = web.Application()
        app.router.add_get("/{any:.*}", served)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.77.1.2", 0).start()
        port = runner.addresses[0][1]
        try:
            await check_proxies(server, port)
        finally:
            await runner.cleanup()

    on_a_server(tmp_path, scenario)


async def check_proxies(server: OwnServer, port: int) -> None:
    registry = server.registry
    pod = a_pod(server)
    spec = {"ports": [{"port": 80}]}
    registry.create(SERVICE, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    target = {"kind": "Pod", "namespace": "default", "name": "web"}

    def endpoints(ip: str, **target: str) -> None:
        subset = {"addresses": [{"ip": ip, "targetRef": target}], "ports": [{"port": port}]}
        metadata = {"name": "web", "namespace": "default"}
        registry.delete(ENDPOINTS, "default", "web")
        registry.create(ENDPOINTS, {"metadata": metadata, "subsets": [subset]})

    def lives_at(ip: str) -> None:
        registry.modify(POD, "default", "web", lambda live: live.update(status={"podIP": ip}), "status")

    async def code(path: str) -> int:
        async with server.session.get(f"/api/v1/namespaces/default/{path}/proxy/x") as answer:
            return answer.status

    assert pod["metadata"]["name"] == "web"
    lives_at("127.77.1.2")
    endpoints("127.77.1.2", **target)
    assert await code("services/web:80") == await code(f"pods/web:{port}") == 200
    for wrong in ({**target, "namespace": "other"}, {**target, "name": "gone"}, {"kind": "Pod"}):
        endpoints("127.77.1.2", **wrong)
        assert await code("services/web:80") == 503
    for elsewhere in ("169.254.169.254", "127.0.0.1"):
        endpoints(elsewhere, **target)
        assert await code("services/web:80") == 503, "the pod is not there"
        lives_at(elsewhere)
        assert await code("services/web:80") == await code(f"pods/web:{port}") == 400, (
            "it may say what it will"
        )
        lives_at("127.77.1.2")
