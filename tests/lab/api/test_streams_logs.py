"""The log's query, in the real server's words, and its text as it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from streams_stage import LIMIT_S, LocalRuntime, Stage, pod, stage

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.runtime import LogOptions

PATH = "/api/v1/namespaces/default/pods/web/log"


async def one_line() -> AsyncIterator[bytes]:
    yield b"line\n"


def get(query: str, served: Object | None = None) -> tuple[int, Any, list[LogOptions]]:
    """Code, text or Status, and what the kubelet was asked."""

    async def main() -> tuple[int, Any, list[LogOptions]]:
        async with (
            stage(LocalRuntime(pieces=one_line), served) as server,
            aiohttp.ClientSession(server.url) as session,
            session.get(PATH + query) as response,
        ):
            plain = response.content_type == "text/plain"
            body = await response.text() if plain else await response.json()
            return response.status, body, server.runtime.options

    return asyncio.run(main())


def test_the_whole_log_of_the_only_container() -> None:
    assert get("") == (200, "line\n", [LogOptions("main")])


def test_every_option() -> None:
    since = "2026-01-02T03:04:05%2B01:00"
    flags, numbers = "follow=true&previous=1&timestamps=", "tailLines=0&limitBytes=9"
    _, _, (options,) = get(f"?container=b&{flags}&{numbers}&sinceTime={since}", pod("a", "b"))
    assert options == LogOptions("b", True, True, True, 0, 1767319445.0, 9)


def test_since_seconds_count_from_now() -> None:
    before = time.time()
    _, _, (options,) = get("?sinceSeconds=60&follow=false&previous=0")
    assert options.since is not None
    assert before - 60 <= options.since <= time.time() - 60
    assert (options.follow, options.previous) == (False, False)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("tailLines=x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("tailLines=", 'strconv.ParseInt: parsing "": invalid syntax'),
        ("limitBytes=1.5", 'strconv.ParseInt: parsing "1.5": invalid syntax'),
        (
            "sinceSeconds=9223372036854775808",
            'strconv.ParseInt: parsing "9223372036854775808": value out of range',
        ),
        (
            "sinceTime=yesterday",
            'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
        ),
        ("sinceTime=2026-13-01T00:00:00Z", 'parsing time "2026-13-01T00:00:00Z": month must be in 1..12'),
        ("container=x", "container x is not valid for pod web"),
    ],
)
def test_a_query_that_can_not_be_read(query: str, words: str) -> None:
    code, status, asked = get("?" + query)
    assert (code, status["reason"], status["message"], asked) == (400, "BadRequest", words, [])


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
        (
            "sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z",
            ": Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
    ],
)
def test_a_query_that_makes_no_sense(query: str, words: str) -> None:
    code, status, asked = get("?" + query)
    assert (code, status["reason"], asked) == (422, "Invalid", [])
    assert status["message"] == f'PodLogOptions "web" is invalid: {words}'
    assert status["details"]["causes"][0]["message"] in words


def test_one_of_several_containers_has_to_be_named() -> None:
    several = pod("a", "b")
    code, status, _ = get("", several)
    assert code == 400
    assert status["message"] == "a container name must be specified for pod web, choose one of: [a b]"
    several["spec"]["initContainers"] = [{"name": "first", "image": "x"}]
    _, status, _ = get("", several)
    assert status["message"].endswith("choose one of: [a b] or one of the init containers: [first]")
    assert get("?container=first", several)[:2] == (200, "line\n")


def test_a_pod_without_a_node_has_an_empty_log() -> None:
    pending = pod("main")
    del pending["spec"]["nodeName"]
    assert get("", pending) == (200, "", [])


async def follow(server: Stage, session: aiohttp.ClientSession) -> aiohttp.ClientResponse:
    return await asyncio.wait_for(session.get(f"{server.url}{PATH}?follow=true"), LIMIT_S)


def test_each_piece_is_sent_when_it_comes_and_a_silent_log_answers_too() -> None:
    async def main() -> None:
        queue: asyncio.Queue[bytes] = asyncio.Queue()

        async def pieces() -> AsyncIterator[bytes]:
            while piece := await queue.get():
                yield piece

        async with stage(LocalRuntime(pieces=pieces)) as server, aiohttp.ClientSession() as session:
            response = await follow(server, session)
            assert (response.status, response.content_type) == (200, "text/plain")
            for piece in (b"a", b"lines\nand a half", b"\xff\x00"):
                queue.put_nowait(piece)
                assert await asyncio.wait_for(response.content.readany(), LIMIT_S) == piece
            queue.put_nowait(b"")
            assert await response.content.read() == b""

    asyncio.run(main())


def test_a_reader_that_goes_ends_the_log_even_while_it_is_silent() -> None:
    async def silence() -> AsyncIterator[bytes]:
        yield b"here\n"
        await asyncio.Event().wait()

    async def main() -> None:
        async with stage(LocalRuntime(pieces=silence)) as server, aiohttp.ClientSession() as session:
            response = await follow(server, session)
            assert await response.content.readany() == b"here\n"
            response.close()
            await asyncio.wait_for(server.runtime.log_closed.wait(), LIMIT_S)

    asyncio.run(main())


def test_a_reader_that_goes_ends_a_log_that_is_never_silent() -> None:
    async def flood() -> AsyncIterator[bytes]:
        while True:
            yield bytes(1 << 16)

    async def main() -> None:
        async with stage(LocalRuntime(pieces=flood)) as server, aiohttp.ClientSession() as session:
            response = await follow(server, session)
            await response.content.readexactly(1 << 17)
            response.close()
            await asyncio.wait_for(server.runtime.log_closed.wait(), LIMIT_S)

    asyncio.run(main())
