"""Lists in pages, while the cluster goes on changing."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from own_api_server import OwnServer, serving

from gpuworkshop.lab.api import changes
from gpuworkshop.lab.api.kinds import CONFIG_MAP

MAPS = "/api/v1/namespaces/default/configmaps"


def run(folder: Path, test: Callable[[OwnServer], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with serving(folder) as server:
            await test(server)

    asyncio.run(whole())


def make(server: OwnServer, *names: str, **labels: str) -> None:
    for name in names:
        metadata = {"name": name, "namespace": "default", "labels": labels}
        server.registry.create(CONFIG_MAP, {"metadata": metadata})


async def page(server: OwnServer, path: str = MAPS, **query: str) -> tuple[int, Any]:
    async with server.session.get(path, params=query) as answer:
        return answer.status, await answer.json()


def names(listed: Any) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def test_pages_end_where_the_list_ends(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        make(server, "a", "b", "c", "d")
        _, whole = await page(server)
        assert names(whole) == ["a", "b", "c", "d"]
        assert "continue" not in whole["metadata"]
        _, exact = await page(server, limit="4")
        assert "continue" not in exact["metadata"]
        _, first = await page(server, limit="3")
        assert (names(first), first["metadata"]["remainingItemCount"]) == (["a", "b", "c"], 1)
        _, second = await page(server, limit="3", **{"continue": first["metadata"]["continue"]})
        assert names(second) == ["d"]
        assert not {"continue", "remainingItemCount"} & second["metadata"].keys()

    run(tmp_path, test)


def test_a_watch_from_the_last_page_misses_nothing(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        make(server, "b", "c", "d")
        _, first = await page(server, limit="2")
        make(server, "a", "e")
        server.registry.delete(CONFIG_MAP, "default", "c")
        _, second = await page(server, limit="2", **{"continue": first["metadata"]["continue"]})
        assert names(second) == ["d", "e"]
        version = second["metadata"]["resourceVersion"]
        assert version == first["metadata"]["resourceVersion"]
        query = {"watch": "true", "resourceVersion": version}
        async with server.session.get(MAPS, params=query) as answer:
            events = [json.loads(await answer.content.readline()) for _ in range(3)]
        seen = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
        assert seen == [("ADDED", "a"), ("ADDED", "e"), ("DELETED", "c")]

    run(tmp_path, test)


def test_a_page_goes_on_though_its_last_object_is_gone(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        make(server, "a", "b", "c")
        _, first = await page(server, limit="2")
        server.registry.delete(CONFIG_MAP, "default", "b")
        _, second = await page(server, **{"continue": first["metadata"]["continue"]})
        assert names(second) == ["c"]

    run(tmp_path, test)


def test_selected_objects_are_paged_but_not_counted(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        make(server, "a", "b", app="web")
        make(server, "c")
        make(server, "d", app="web")
        _, first = await page(server, limit="2", labelSelector="app=web")
        assert "remainingItemCount" not in first["metadata"]
        token = first["metadata"]["continue"]
        _, second = await page(server, limit="2", labelSelector="app=web", **{"continue": token})
        assert (names(first), names(second)) == (["a", "b"], ["d"])

    run(tmp_path, test)


def test_pages_of_all_namespaces(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        make(server, "z")
        metadata = {"name": "a", "namespace": "kube-system"}
        server.registry.create(CONFIG_MAP, {"metadata": metadata})
        _, first = await page(server, "/api/v1/configmaps", limit="1")
        token = first["metadata"]["continue"]
        _, second = await page(server, "/api/v1/configmaps", limit="1", **{"continue": token})
        assert (names(first), names(second)) == (["z"], ["a"])

    run(tmp_path, test)


def test_a_token_from_before_what_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes.ChangeLog.__init__, "__defaults__", (10,))

    async def test(server: OwnServer) -> None:
        make(server, "a", "b")
        _, first = await page(server, limit="1")
        make(server, *(f"more-{n}" for n in range(30)))
        code, status = await page(server, **{"continue": first["metadata"]["continue"]})
        assert (code, status["reason"]) == (410, "Expired")

    run(tmp_path, test)


@pytest.mark.parametrize(
    "content", [b"", b"null", b"[]", b'["x", ["", ""]]', b'["1", "x"]', b"\xff", b"[" * 2000, b'["1"]']
)
def test_tokens_of_ones_own_making(tmp_path: Path, content: bytes) -> None:
    async def test(server: OwnServer) -> None:
        code, status = await page(server, **{"continue": base64.urlsafe_b64encode(content).decode() or "?"})
        assert (code, status["message"]) == (400, "continue key is not valid")

    run(tmp_path, test)
