"""Watches: what is replayed, what is told, in which form, and how they end."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from own_api_server import OwnServer, new_registry, serving

from gpuworkshop.lab.api import changes, watching
from gpuworkshop.lab.api.kinds import CONFIG_MAP, EVENT, NAMESPACE
from gpuworkshop.lab.api.objects import Object, meta
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.store import Store

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
LIMIT_S = 30.0


def put(registry: Registry, name: str, value: str = "1", namespace: str = "default", **labels: str) -> Object:
    """Create the ConfigMap, or change it."""
    obj = {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "data": {"value": value}}
    known = registry.find(CONFIG_MAP, namespace, name)
    return registry.update(CONFIG_MAP, obj) if known else registry.create(CONFIG_MAP, obj)


class Stream:
    """The events of a watch."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def next(self) -> Any:
        line = await asyncio.wait_for(self.answer.content.readline(), LIMIT_S)
        return json.loads(line) if line else None

    async def told(self, count: int) -> list[tuple[str, str]]:
        """The types and names of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    async def rest(self) -> list[Any]:
        """All events up to the end."""
        body = await asyncio.wait_for(self.answer.content.read(), LIMIT_S)
        return [json.loads(line) for line in body.splitlines()]


@contextlib.asynccontextmanager
async def watch(
    server: OwnServer, path: str = MAPS, accept: str = "application/json", **query: Any
) -> AsyncIterator[Stream]:
    asked = {"watch": "true", **{key: str(value) for key, value in query.items()}}
    async with server.session.get(path, params=asked, headers={"Accept": accept}) as answer:
        assert answer.status == 200, await answer.text()
        yield Stream(answer)


def run(folder: Path, test: Callable[[OwnServer], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with serving(folder) as server:
            await test(server)

    asyncio.run(whole())


def version(server: OwnServer) -> int:
    return server.registry.store.revision


def test_what_exists_comes_first_then_each_change(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        put(server.registry, "a")
        async with watch(server) as stream:
            assert await stream.told(1) == [("ADDED", "a")]
            put(server.registry, "b")
            put(server.registry, "a", "2")
            server.registry.delete(CONFIG_MAP, "default", "b")
            assert await stream.told(3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]

    run(tmp_path, test)


def test_from_a_version_every_change_is_replayed_and_nothing_else(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        put(server.registry, "before")
        begun = version(server)
        made = [put(server.registry, "a", str(n)) for n in range(5)]
        server.registry.delete(CONFIG_MAP, "default", "a")
        put(server.registry, "elsewhere", namespace="kube-system")
        async with watch(server, resourceVersion=begun) as stream:
            events = [await stream.next() for _ in range(6)]
            assert [event["type"] for event in events] == ["ADDED", *["MODIFIED"] * 4, "DELETED"]
            assert [event["object"] for event in events[:5]] == made
            versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
            assert versions == list(range(begun + 1, begun + 7))

    run(tmp_path, test)


def test_a_quiet_watch_answers_at_once(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        # Without a single event, a client has to learn that its watch has begun.
        async with asyncio.timeout(LIMIT_S), watch(server, resourceVersion=version(server)) as stream:
            put(server.registry, "a")
            assert await stream.told(1) == [("ADDED", "a")]

    run(tmp_path, test)


def test_from_before_what_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes.ChangeLog.__init__, "__defaults__", (10,))

    async def test(server: OwnServer) -> None:
        begun = version(server)
        for n in range(30):
            put(server.registry, "a", str(n))
        async with watch(server, resourceVersion=begun) as stream:
            (event,) = await stream.rest()
        assert event["type"] == "ERROR"
        status = event["object"]
        assert (status["kind"], status["code"], status["reason"]) == ("Status", 410, "Expired")
        assert status["message"].startswith(f"too old resource version: {begun} (")

    run(tmp_path, test)


def test_from_the_future(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        async with watch(server, resourceVersion=version(server) + 1) as stream:
            (event,) = await stream.rest()  # and it ends there
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == (
            "ERROR",
            504,
            "Timeout",
        )
        assert event["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"

    run(tmp_path, test)


def test_one_that_falls_behind_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes.ChangeLog.__init__, "__defaults__", (10,))

    async def test(server: OwnServer) -> None:
        async with watch(server, resourceVersion=version(server)) as stream:
            for n in range(30):  # with no chance for the watch to run in between
                put(server.registry, "a", str(n))
            events = await stream.rest()
        assert [event["type"] for event in events] == ["ERROR"]
        assert events[0]["object"]["code"] == 410

    run(tmp_path, test)


def test_initial_events_end_with_a_bookmark(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        put(server.registry, "a")
        query = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        for begun in ("", str(version(server)), "0"):
            asked = {"resourceVersion": begun, "allowWatchBookmarks": "true", **query}
            async with watch(server, **asked) as stream:
                assert await stream.told(1) == [("ADDED", "a")]
                end = await stream.next()
                assert end["type"] == "BOOKMARK"
                assert end["object"]["kind"] == "ConfigMap"
                assert end["object"]["metadata"]["resourceVersion"] == str(version(server))
                assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}

    run(tmp_path, test)


def test_without_initial_events_it_begins_now(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        put(server.registry, "a")
        query = {"sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
        async with watch(server, **query) as stream:
            put(server.registry, "b")
            assert await stream.told(1) == [("ADDED", "b")]

    run(tmp_path, test)


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        for query in (
            {"sendInitialEvents": "true"},
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
            {"resourceVersionMatch": "NotOlderThan", "resourceVersion": "1"},
        ):
            async with server.session.get(MAPS, params={"watch": "1", **query}) as answer:
                status = await answer.json()
                assert (answer.status, status["reason"]) == (422, "Invalid"), status

    run(tmp_path, test)


def test_bookmarks_come_to_those_who_want_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_EVERY_S", 0.05)

    async def test(server: OwnServer) -> None:
        begun = version(server)
        async with (
            watch(server, resourceVersion=begun, allowWatchBookmarks="true") as stream,
            watch(server, resourceVersion=begun, allowWatchBookmarks="false") as plain,
            watch(server, resourceVersion=begun, allowWatchBookmarks="true", accept=TABLE) as table,
        ):
            # Changes elsewhere, however many, neither bring nor keep away a bookmark.
            for n in range(3):
                put(server.registry, "other", str(n), namespace="kube-system")
                event = await stream.next()
                assert event["type"] == "BOOKMARK"
                seen = int(event["object"]["metadata"]["resourceVersion"])
                assert begun <= seen <= version(server)
                assert "annotations" not in event["object"]["metadata"]
            event = await table.next()
            assert event["object"]["kind"] == "Table"
            put(server.registry, "a")
            assert await plain.told(1) == [("ADDED", "a")]

    run(tmp_path, test)


def test_a_busy_cluster_does_not_keep_bookmarks_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_EVERY_S", 0.2)

    async def test(server: OwnServer) -> None:
        async with watch(server, resourceVersion=version(server), allowWatchBookmarks="true") as stream:
            seen = asyncio.ensure_future(stream.next())
            number = 0
            while not seen.done():  # as leases are written all the time
                put(server.registry, "other", str(number := number + 1), namespace="kube-system")
                await asyncio.sleep(0.01)
            assert (await seen)["type"] == "BOOKMARK"

    run(tmp_path, test)


def test_a_watch_without_bookmarks_sleeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "BOOKMARK_EVERY_S", 0.01)
    asked: list[int] = []

    async def test(server: OwnServer) -> None:
        log, original = server.registry.store.log, server.registry.store.log.more

        def more() -> asyncio.Future[None]:
            asked.append(1)
            return original()

        monkeypatch.setattr(log, "more", more)
        async with watch(server, resourceVersion=version(server), timeoutSeconds=1) as stream:
            assert await stream.rest() == []

    run(tmp_path, test)
    assert len(asked) == 1


def test_the_time_out_ends_it(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        put(server.registry, "a")
        async with watch(server, timeoutSeconds=1) as stream:
            assert [event["type"] for event in await stream.rest()] == ["ADDED"]

    run(tmp_path, test)


def test_objects_enter_and_leave_a_label_selector(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        put(server.registry, "a", app="web")
        put(server.registry, "b", app="other")
        async with watch(server, labelSelector="app=web", resourceVersion=version(server)) as stream:
            put(server.registry, "b", "2", app="other")  # never seen
            put(server.registry, "b", "3", app="web")
            put(server.registry, "b", "4", app="web")
            left = put(server.registry, "b", "5", app="other")
            server.registry.delete(CONFIG_MAP, "default", "b")  # nor is this
            server.registry.delete(CONFIG_MAP, "default", "a")
            assert await stream.told(2) == [("ADDED", "b"), ("MODIFIED", "b")]
            event = await stream.next()
            assert event["type"] == "DELETED"
            assert event["object"]["data"] == {"value": "4"}, "its last state within the selection"
            assert event["object"]["metadata"]["resourceVersion"] == meta(left)["resourceVersion"]
            assert await stream.told(1) == [("DELETED", "a")]

    run(tmp_path, test)


def test_a_field_selector_names_one_object(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        put(server.registry, "a")
        put(server.registry, "b")
        async with watch(server, fieldSelector="metadata.name=b") as stream:
            put(server.registry, "a", "2")
            put(server.registry, "b", "2")
            assert await stream.told(2) == [("ADDED", "b"), ("MODIFIED", "b")]

    run(tmp_path, test)


def test_all_namespaces(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        async with watch(server, "/api/v1/configmaps", resourceVersion=version(server)) as stream:
            put(server.registry, "a")
            put(server.registry, "b", namespace="kube-system")
            server.registry.create(NAMESPACE, {"metadata": {"name": "another-kind"}})
            server.registry.delete(CONFIG_MAP, "default", "a")
            assert await stream.told(3) == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]

    run(tmp_path, test)


def test_a_table_names_its_columns_once(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        put(server.registry, "a")
        async with watch(server, accept=TABLE) as stream:
            first = (await stream.next())["object"]
            put(server.registry, "b")
            second = (await stream.next())["object"]
        assert first["kind"] == second["kind"] == "Table"
        assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
        assert second["columnDefinitions"] == []
        assert second["rows"][0]["cells"][:2] == ["b", 1]
        assert second["rows"][0]["object"]["metadata"]["name"] == "b"

    run(tmp_path, test)


def test_metadata_alone(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        put(server.registry, "a")
        async with watch(server, accept=PARTIAL) as stream:
            event = await stream.next()
        assert (event["type"], event["object"]["kind"]) == ("ADDED", "PartialObjectMetadata")
        assert event["object"].keys() == {"kind", "apiVersion", "metadata"}

    run(tmp_path, test)


async def settled(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition():
            await asyncio.sleep(0.01)


def test_clients_that_go_away_leave_nothing_behind(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        log = server.registry.store.log
        listeners = set(log.listeners)
        async with server.session.get("/readyz"):
            before = len(asyncio.all_tasks())
        for _ in range(30):
            async with watch(server, resourceVersion=version(server)) as stream:
                await settled(lambda: any(not future.done() for future in log._waiting))
            stream.answer.close()
        await settled(lambda: all(future.done() for future in log._waiting))
        await settled(lambda: len(asyncio.all_tasks()) <= before)
        put(server.registry, "a")
        assert log._waiting == []
        assert log.listeners == listeners

    run(tmp_path, test)


def test_watches_end_by_themselves_when_the_server_ends(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        async with contextlib.AsyncExitStack() as stack:
            streams = [await stack.enter_async_context(watch(server)) for _ in range(50)]
            put(server.registry, "a")
            for stream in streams:
                await stream.next()
            server.api.close()
            for stream in streams:
                assert await stream.rest() == [], "it ends, and is not cut off"

    run(tmp_path, test)


def test_fifty_watches_lose_nothing_and_mix_nothing_up(tmp_path: Path) -> None:
    total, watches = 300, 50

    async def follow(server: OwnServer, begun: int) -> list[int]:
        async with watch(server, resourceVersion=begun, fieldSelector="metadata.name=clock") as stream:
            events = [await stream.next() for _ in range(total)]
        assert {event["type"] for event in events} == {"MODIFIED"}
        return [int(event["object"]["data"]["value"]) for event in events]

    async def test(server: OwnServer) -> None:
        put(server.registry, "clock", "begin")
        following = [asyncio.create_task(follow(server, version(server))) for _ in range(watches)]
        for number in range(total):
            put(server.registry, "clock", str(number))
            put(server.registry, f"noise-{number % 7}", str(number))
            await asyncio.sleep(0.01)  # a hundred changes a second
        seen = await asyncio.gather(*following)
        assert seen == [list(range(total))] * watches

    run(tmp_path, test)


def test_watches_of_many_kinds_are_each_their_own(tmp_path: Path) -> None:
    async def test(server: OwnServer) -> None:
        begun = version(server)
        events = "/api/v1/namespaces/default/events"
        async with (
            watch(server, resourceVersion=begun) as maps,
            watch(server, events, resourceVersion=begun) as told,
        ):
            made = put(server.registry, "a")
            server.registry.event(made, "Normal", "Seen", "it is", "tests")
            assert await maps.told(1) == [("ADDED", "a")]
            (event,) = server.registry.list(EVENT)
            assert await told.told(1) == [("ADDED", meta(event)["name"])]

    run(tmp_path, test)


def test_a_registry_may_be_watched_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "cluster.db"
    first = new_registry(path=path)
    put(first, "a")
    seen = first.store.revision
    put(first, "b")
    first.store.close()

    async def whole() -> None:
        async with serving(tmp_path, Registry(Store(path))) as server:
            # The changes of before are not remembered, and a client that has missed one is told so.
            async with watch(server, resourceVersion=seen) as stream:
                assert (await stream.next())["object"]["code"] == 410
            async with watch(server, resourceVersion=version(server)) as stream:
                put(server.registry, "c")
                assert await stream.told(1) == [("ADDED", "c")]

    asyncio.run(whole())
