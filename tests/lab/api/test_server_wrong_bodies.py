"""Wrong bodies of every kind, in every form of a write: neither the server nor a controller fails."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from own_api_server import new_registry, serving
from wrong_bodies import ODD, Body, sound, wrong_bodies

from gpuworkshop.lab.api.account_tokens import Tokens
from gpuworkshop.lab.api.kinds import BUILT_IN, NODE, POD, SERVICE_ACCOUNT, Kind
from gpuworkshop.lab.api.listening import ObjectChange
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import all_controllers
from gpuworkshop.lab.controllers.loop import Controller
from gpuworkshop.lab.nodes.controllers import node_controllers

FEW, MANY = 25, 200
BOUNDED = settings(
    max_examples=MANY,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
JSON = "application/json"
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
WRITES = ("post", "put", "merge", "strategic", "json", "apply", "status")
UNMERGEABLE = ("failed to create typed patch object", "map: map[")
KINDS = [kind for kind in BUILT_IN if "create" in kind.verbs]


@dataclass
class Target:
    """A server in this process, whose cluster is as new for every example."""

    runner: asyncio.Runner
    registry: Registry
    session: aiohttp.ClientSession
    beginning: dict[tuple[str, str, str], Object]
    controllers: list[Controller]

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """A request; the code and the JSON of the answer."""

        async def request() -> tuple[int, Any]:
            data = None if body is None else json.dumps(body).encode()
            async with self.session.request(method, path, data=data, headers=headers) as answer:
                return answer.status, json.loads(await answer.read())

        code, found = self.runner.run(request())
        if code >= 400:
            assert (found["kind"], found["status"], found["code"]) == ("Status", "Failure", code)
            # The real server has no better answer than a bare 500 to a patch whose lists cannot be merged.
            unmergeable = code == 500 and found["message"].startswith(UNMERGEABLE)
            assert unmergeable or (code < 500 and found["reason"]), (method, path, found)
        return code, found

    def control(self) -> None:
        """Have every controller look at what is new, more than once, as each sees what others have done."""
        for controller in 2 * self.controllers:
            for change in self._new():
                if controller.watches_all or change.kind in controller.watches:
                    for key in list(controller.keys(self.registry, change)):
                        with contextlib.suppress(ApiError):
                            controller.reconcile(self.registry, key)

    def _new(self) -> list[ObjectChange]:
        known = {id(obj) for obj in self.beginning.values()}
        found = [obj for _, obj in self.registry.store.everything() if id(obj) not in known]
        kinds = [(self.registry.kinds.of(obj["apiVersion"], obj["kind"]), obj) for obj in found]
        return [ObjectChange("ADDED", kind, obj, None) for kind, obj in kinds if kind is not None]

    def restore(self) -> None:
        """Have the cluster's objects be those of the beginning."""
        store = self.registry.store
        for resource, obj in list(store.everything()):
            key = (resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
            if self.beginning.get(key) is not obj:
                store.remove(*key)
        for (resource, namespace, name), obj in self.beginning.items():
            if store.find(resource, namespace, name) is None:
                self.beginning[resource, namespace, name] = store.write(resource, {**obj}, None)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    registry = new_registry()
    registry.create(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": "default"}})
    has = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    registry.create(NODE, {"metadata": {"name": "n1"}, "status": {"allocatable": has}})
    with asyncio.Runner() as runner:
        stack, folder = contextlib.AsyncExitStack(), tmp_path_factory.mktemp("pki")
        server = runner.run(stack.enter_async_context(serving(folder, registry)))
        tokens = Tokens(registry, folder, "https://tests")
        controllers = [*all_controllers(tokens, "PEM"), *node_controllers()]
        everything = list(registry.store.everything())
        beginning = {
            (resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
            for resource, obj in everything
        }
        yield Target(runner, registry, server.session, beginning, controllers)
        runner.run(stack.aclose())


def collection(kind: Kind) -> str:
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    return f"{root}/namespaces/default/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"


def write(target: Target, kind: Kind, how: str, body: Body) -> int:
    """Write the body in one of the forms, over a sound object where it needs one."""
    path = collection(kind)
    if how == "post":
        return target.ask("POST", path, body, **{"Content-Type": JSON})[0]
    good = sound(kind)
    if how != "apply":
        assert target.ask("POST", path, good, **{"Content-Type": JSON})[0] == 201
    path = f"{path}/{good['metadata']['name']}"
    if how == "put":
        return target.ask("PUT", path, body, **{"Content-Type": JSON})[0]
    if how == "status":
        if "status" not in kind.subresources:
            return 0
        return target.ask("PATCH", f"{path}/status", body, **{"Content-Type": PATCHES["merge"]})[0]
    patch: Any = body
    if how == "json":
        patch = [{"op": "replace", "path": f"/{key}", "value": value} for key, value in body.items()]
    query = "?fieldManager=fuzz&force=true" if how == "apply" else ""
    return target.ask("PATCH", path + query, patch, **{"Content-Type": PATCHES[how]})[0]


@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.full)])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_no_body_makes_the_server_fail(target: Target, kind: Kind, examples: int) -> None:
    assert write(target, kind, "post", sound(kind)) == 201
    target.restore()
    codes: set[int] = set()

    @settings(BOUNDED, max_examples=examples)
    @given(wrong_bodies(kind), st.sampled_from(WRITES if kind.stored else WRITES[:1]))
    def check(body: Body, how: str) -> None:
        note(f"{how} {body}")
        try:
            codes.add(code := write(target, kind, how, body))
            if 200 <= code < 300 and kind.stored:  # what it has taken it can also show, and act on
                target.ask("GET", collection(kind), **TABLE)
                target.control()
        finally:
            target.restore()

    check()
    assert codes & {400, 422}, "some were wrong enough to be refused"


SUBRESOURCES = {
    "eviction": f"{collection(POD)}/fuzz/eviction",
    "binding": f"{collection(POD)}/fuzz/binding",
    "token": f"{collection(SERVICE_ACCOUNT)}/default/token",
}
PARTS: dict[str, list[str]] = {
    "eviction": ["metadata", "deleteOptions", "gracePeriodSeconds", "preconditions", "uid", "dryRun"],
    "binding": ["metadata", "target", "name", "kind", "uid"],
    "token": [
        "spec",
        "audiences",
        "expirationSeconds",
        "boundObjectRef",
        "kind",
        "name",
        "uid",
        "apiVersion",
    ],
}


def nested(names: list[str]) -> st.SearchStrategy[Any]:
    """Mappings of those names, within each other."""
    return st.recursive(
        ODD, lambda inner: st.dictionaries(st.sampled_from(names), inner, max_size=3), max_leaves=6
    )


@pytest.mark.parametrize("name", SUBRESOURCES)
def test_nor_does_one_of_a_subresource(target: Target, name: str) -> None:
    @BOUNDED
    @given(st.dictionaries(st.sampled_from(PARTS[name]), nested(PARTS[name]), max_size=3))
    def check(body: Body) -> None:
        try:
            target.ask("POST", collection(POD), sound(POD), **{"Content-Type": JSON})
            target.ask("POST", SUBRESOURCES[name], body, **{"Content-Type": JSON})
        finally:
            target.restore()

    check()


@BOUNDED
@given(
    op=st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "", 7, None]),
    path=st.sampled_from(["", "/", "/metadata", "/metadata/name", "/data/a/b", "/-", "/~", "x", 7, None]),
    source=st.sampled_from(["", "/metadata", "/data", "/nothing", None, 7]),
    value=ODD,
    whole=st.booleans(),
)
def test_nor_does_a_json_patch(
    target: Target, op: Any, path: Any, source: Any, value: Any, whole: bool
) -> None:
    (maps,) = (kind for kind in KINDS if kind.kind == "ConfigMap")
    try:
        target.ask("POST", collection(maps), sound(maps), **{"Content-Type": JSON})
        patch: Any = value if whole else [{"op": op, "path": path, "from": source, "value": value}]
        target.ask("PATCH", f"{collection(maps)}/fuzz", patch, **{"Content-Type": PATCHES["json"]})
    finally:
        target.restore()
