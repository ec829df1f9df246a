"""The proxy to pods and services: which address is meant, and that everything passes as it is."""

from __future__ import annotations

import asyncio
import gzip
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from streams_stage import LIMIT_S, free_port, listening, pod, serving, stage

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.streams.proxying import check_address, parse_target, resolve_pod, resolve_service


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("web", ("http", "web", "")),
        ("web:8080", ("http", "web", "8080")),
        ("web:", ("http", "web", "")),
        ("https:web:", ("https", "web", "")),
        ("https:web:tls", ("https", "web", "tls")),
        (":web:80", ("http", "web", "80")),
    ],
)
def test_a_target(text: str, target: tuple[str, str, str]) -> None:
    assert parse_target(text) == target


@pytest.mark.parametrize("text", ["", ":80", "ftp:web:80", "a:b:c:d", "https::80"])
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(ApiError, match="invalid proxy request") as refused:
        parse_target(text)
    assert refused.value.code == 400


def test_a_pods_address() -> None:
    served = pod("main", "side")
    assert resolve_pod(served, "") == ("127.0.0.1", 80)
    served["spec"]["containers"][1]["ports"] = [{"containerPort": 9400}, {"containerPort": 1}]
    assert resolve_pod(served, "") == ("127.0.0.1", 9400)
    assert resolve_pod(served, "81") == ("127.0.0.1", 81)
    for port in ("http", "0", "65536", "1234567"):
        with pytest.raises(ApiError, match="invalid port"):
            resolve_pod(served, port)
    del served["status"]["podIP"]
    with pytest.raises(ApiError, match="address not allowed"):
        resolve_pod(served, "")


def service(*ports: dict[str, Any]) -> Object:
    return {"metadata": {"name": "web"}, "spec": {"ports": list(ports)}}


def endpoints(*ports: dict[str, Any], ready: tuple[str, ...] = ("127.1.2.3",)) -> Object:
    addresses = [{"ip": address} for address in ready]
    return {
        "subsets": [
            {"notReadyAddresses": [{"ip": "127.9.9.9"}]},
            {"addresses": addresses, "ports": list(ports)},
        ]
    }


def anywhere(_: Mapping[str, Any]) -> bool:
    return True


def test_a_services_endpoint_by_number_or_name() -> None:
    plain = service({"port": 80, "targetPort": 8080})
    reached = endpoints({"port": 8080})
    for port in ("80", ""):
        assert resolve_service(plain, reached, port, anywhere) == ("127.1.2.3", 8080)
    named = service({"name": "http", "port": 80}, {"name": "metrics", "port": 9100})
    reached = endpoints(
        {"name": "http", "port": 8080}, {"name": "metrics", "port": 9400}, ready=("127.1.2.3", "127.1.2.4")
    )
    found = {
        resolve_service(named, reached, port, anywhere) for port in ("9100", "metrics") for _ in range(60)
    }
    assert found == {("127.1.2.3", 9400), ("127.1.2.4", 9400)}


def test_only_the_addresses_of_pods_are_followed() -> None:
    ready = ("169.254.169.254", "127.1.2.3")
    reached = endpoints({"port": 80}, ready=ready)

    def a_pods(address: Mapping[str, Any]) -> bool:
        return bool(address["ip"] == "127.1.2.3")

    plain = service({"port": 80})
    assert {resolve_service(plain, reached, "80", a_pods) for _ in range(60)} == {("127.1.2.3", 80)}
    with pytest.raises(ApiError, match="no endpoints available"):
        resolve_service(plain, endpoints({"port": 80}, ready=ready[:1]), "80", a_pods)


@pytest.mark.parametrize("address", ["127.16.0.1", "127.77.3.4", "127.254.255.254"])
def test_a_labs_addresses(address: str) -> None:
    check_address(address)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "127.1.2.3", "127.15.255.255", "169.254.169.254", "10.0.0.1", "::1", "localhost", ""],
)
def test_what_is_no_labs_address(address: str) -> None:
    with pytest.raises(ApiError, match="address not allowed") as refused:
        check_address(address)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("reached", "port", "words"),
    [
        (endpoints({"name": "http", "port": 1}), "81", 'no service port 81 found for service "web"'),
        (endpoints({"name": "http", "port": 1}), "other", 'no endpoints available for service "web"'),
        (endpoints({"name": "http", "port": 1}), "", 'no endpoints available for service "web"'),
        (endpoints({"name": "http", "port": 1}, ready=()), "80", 'no endpoints available for service "web"'),
        ({"metadata": {}}, "80", 'no endpoints available for service "web"'),
        (None, "http", 'no endpoints available for service "web"'),
    ],
)
def test_a_service_that_leads_nowhere(reached: Object | None, port: str, words: str) -> None:
    with pytest.raises(ApiError) as refused:
        resolve_service(service({"name": "http", "port": 80}), reached, port, anywhere)
    assert (refused.value.code, refused.value.reason, refused.value.message) == (
        503,
        "ServiceUnavailable",
        words,
    )


Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def proxied(handle: Handle) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    """A client of the API server, and the path of the proxy to what `handle` serves in the pod."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", handle)
    async with (
        listening(app) as port,
        stage() as server,
        aiohttp.ClientSession(server.url, auto_decompress=False) as session,
    ):
        yield session, f"/api/v1/namespaces/default/pods/web:{port}/proxy"


async def tell(request: web.Request) -> web.StreamResponse:
    """All that has arrived."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    body = (await request.read()).decode("latin-1")
    return web.json_response(
        {"method": request.method, "target": request.raw_path, "headers": headers, "body": body}
    )


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_method_path_query_and_body_pass(method: str) -> None:
    async def main() -> None:
        async with proxied(tell) as (session, path):
            body = "" if method == "GET" else "a body"
            url = f"{path}/api/v1/query/?match[]=up%7Bx=%22y%22%7D&time=1&time=2"
            async with session.request(method, url, data=body or None) as response:
                told = await response.json()
            assert (told["method"], told["body"]) == (method, body)
            assert told["target"].startswith("/api/v1/query/?match")
            assert told["target"].endswith("time=1&time=2")
            assert ("content-length" in told["headers"]) == bool(body)

    asyncio.run(main())


def test_headers_pass_but_for_those_of_one_hop_and_the_token() -> None:
    async def main() -> None:
        async with proxied(tell) as (session, path):
            sent = {
                "Authorization": "Bearer secret",
                "X-Mine": "1",
                "Connection": "X-Hop",
                "X-Hop": "1",
                "TE": "trailers",
            }
            async with session.get(path + "/", headers={**sent, "User-Agent": "me"}) as response:
                headers = (await response.json())["headers"]
            assert (headers["x-mine"], headers["user-agent"]) == ("1", "me")
            assert not {"authorization", "x-hop", "te"} & set(headers)
            assert headers["host"] == "127.0.0.1:" + path.split("web:")[1].split("/")[0]

    asyncio.run(main())


def test_the_answer_passes_as_it_is() -> None:
    packed = gzip.compress(b"text " * 1000)

    async def handle(_: web.Request) -> web.StreamResponse:
        response = web.Response(status=418, reason="Short And Stout", body=packed)
        response.headers.extend({"Content-Encoding": "gzip", "X-Theirs": "1", "Keep-Alive": "timeout=5"})
        response.headers.add("Set-Cookie", "a=1")
        response.headers.add("Set-Cookie", "b=2")
        return response

    async def main() -> None:
        async with proxied(handle) as (session, path), session.get(path + "/x") as response:
            assert (response.status, response.reason) == (418, "Short And Stout")
            assert await response.read() == packed
            assert response.headers["Content-Length"] == str(len(packed))
            assert response.headers.getall("Set-Cookie") == ["a=1", "b=2"]
            assert ("X-Theirs" in response.headers, "Keep-Alive" in response.headers) == (True, False)

    asyncio.run(main())


def test_a_head_has_the_length_and_no_body() -> None:
    async def main() -> None:
        async with proxied(tell) as (session, path), session.head(path + "/x") as response:
            assert int(response.headers["Content-Length"]) > 0
            assert await response.read() == b""

    asyncio.run(main())


def test_bodies_stream_both_ways() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        async for piece in request.content.iter_any():
            await response.write(piece)
        return response

    async def main() -> None:
        queue: asyncio.Queue[bytes] = asyncio.Queue()

        async def body() -> AsyncIterator[bytes]:
            while piece := await queue.get():
                yield piece

        async with proxied(handle) as (session, path):
            queue.put_nowait(b"first")
            async with session.post(path + "/x", data=body()) as response:
                for piece in (b"first", b"second", os.urandom(3_000_000)):
                    if piece != b"first":
                        queue.put_nowait(piece)
                    assert await asyncio.wait_for(response.content.readexactly(len(piece)), LIMIT_S) == piece
                queue.put_nowait(b"")
                assert await response.content.read() == b""

    asyncio.run(main())


@pytest.mark.parametrize(
    ("asked", "location", "seen"),
    [
        ("/", "/graph?x=1", "PROXY/graph?x=1"),
        ("/a/b", "/graph", "PROXY/graph"),
        ("/a/", "../graph", "../graph"),
        ("/", "http://SERVED/graph#there", "PROXY/graph#there"),
        ("/", "https://example.org/graph", "https://example.org/graph"),
    ],
)
def test_a_redirection_stays_within_the_proxy(asked: str, location: str, seen: str) -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": location.replace("SERVED", request.host)})

    async def main() -> None:
        async with (
            proxied(handle) as (session, path),
            session.get(path + asked, allow_redirects=False) as response,
        ):
            assert (response.status, response.headers["Location"]) == (302, seen.replace("PROXY", path))

    asyncio.run(main())


def test_the_bare_proxy_leads_to_its_root() -> None:
    async def main() -> None:
        async with proxied(tell) as (session, path):
            async with session.get(path + "?a=1", allow_redirects=False) as response:
                assert (response.status, response.headers["Location"]) == (301, path + "/?a=1")
            async with session.get(path) as response:
                assert (await response.json())["target"] == "/"
            async with session.post(path) as response:
                assert (await response.json())["target"] == "/"

    asyncio.run(main())


async def status_of(port: int, scheme: str = "") -> dict[str, Any]:
    async with stage() as server, aiohttp.ClientSession(server.url) as session:
        path = f"/api/v1/namespaces/default/pods/{scheme}web:{port}/proxy/"
        async with session.get(path) as response:
            status: dict[str, Any] = await response.json()
            assert response.status == status["code"] == 503
            assert status["reason"] == "ServiceUnavailable"
            return status


def test_nobody_listens() -> None:
    async def main() -> None:
        port = await free_port()
        words = f"error trying to reach service: dial tcp 127.0.0.1:{port}: connect: connection refused"
        assert (await status_of(port))["message"] == words

    asyncio.run(main())


def test_a_server_that_speaks_no_http() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()

    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"\0nonsense\r\n\r\n")

    async def main() -> None:
        async with serving(hang_up) as port:
            assert (await status_of(port))["message"] == "error trying to reach service: EOF"
        async with serving(babble) as port:
            message = (await status_of(port))["message"]
            assert message.startswith(
                "error trying to reach service: net/http: HTTP/1.x transport connection broken"
            )
            message = (await status_of(port, "https:"))["message"]
            assert message.startswith("error trying to reach service: ")

    asyncio.run(main())


def test_an_answer_that_is_cut_off_is_cut_off_for_the_client_too() -> None:
    async def cut_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbegun\r\n")
        await writer.drain()

    async def main() -> None:
        async with serving(cut_off) as port, stage() as server, aiohttp.ClientSession(server.url) as session:
            with pytest.raises(aiohttp.ClientError):
                async with session.get(f"/api/v1/namespaces/default/pods/web:{port}/proxy/x") as response:
                    await response.read()

    asyncio.run(main())


@pytest.mark.real
def test_kubectl_gets_through_the_proxy() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        if request.path == "/":
            raise web.HTTPFound("/graph")
        return web.Response(text="the graph\n")

    async def main() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        async with listening(app) as port, stage() as server:
            path = f"/api/v1/namespaces/default/pods/web:{port}/proxy/"
            assert await server.kubectl("get", "--raw", path) == (0, b"the graph\n", "")
        async with stage() as server:
            code, _, errors = await server.kubectl("get", "--raw", path)
            words = f"error trying to reach service: dial tcp 127.0.0.1:{port}: connect: connection refused"
            assert (code, errors) == (1, f"Error from server (ServiceUnavailable): {words}\n")

    asyncio.run(main())
