"""The HTTP server: real clients, hostile ones, and slow ones."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import httpx
import pytest

from gpuworkshop.exporter.http1 import Request, Response, Server

LARGE = b"0123456789abcdef" * 500_000


def answers(request: Request) -> Response:
    if request.path == "/large":
        return Response(LARGE)
    if request.path == "/metrics":
        return Response(f"up 1 # {request.headers.get('accept-encoding', '')}".encode())
    return Response(b"not found\n", 404)


@contextmanager
def serving(**options: float) -> Iterator[int]:
    """The port of a server in a thread of its own."""
    loop = asyncio.new_event_loop()
    server = Server(answers, most=int(options.get("most", 64)), patience_s=options.get("patience_s", 10.0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(work: Awaitable[int | None]) -> int | None:
        async def done() -> int | None:
            return await work

        return asyncio.run_coroutine_threadsafe(done(), loop).result(20)

    try:
        yield run(server.start("127.0.0.1", 0)) or 0
    finally:
        run(server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


def raw(port: int, sent: bytes) -> bytes:
    """All that the server says to these bytes, until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as client:
        client.sendall(sent)
        return b"".join(iter(lambda: client.recv(65536), b""))


def test_a_connection_is_kept_for_many_requests() -> None:
    with serving() as port:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        sockets = set()
        for _ in range(20):
            client.request("GET", "/metrics?x=1", headers={"Accept-Encoding": "gzip"})
            assert client.getresponse().read() == b"up 1 # gzip"
            sockets.add(client.sock)
        assert len(sockets) == 1
        client.request("HEAD", "/large")
        answer = client.getresponse()
        assert (answer.status, answer.headers["Content-Length"], answer.read()) == (200, str(len(LARGE)), b"")
        client.request("GET", "/metrics")
        assert client.getresponse().status == 200
        client.close()


def test_a_large_answer_comes_whole() -> None:
    with serving() as port:
        assert httpx.get(f"http://127.0.0.1:{port}/large").content == LARGE


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", 200),
        (b"GET /metrics HTTP/1.0\r\n\r\n", 200),
        (b"GET /nothing HTTP/1.0\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", 405),
        (b"GET /metrics HTTP/1.1\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500, 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20_000, 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999\r\n\r\n" + b"x" * 99_999, 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n", 417),
    ],
)
def test_each_request_has_the_status_that_it_deserves(sent: bytes, status: int) -> None:
    with serving() as port:
        assert raw(port, sent).startswith(b"HTTP/1.1 %d" % status)


def test_two_requests_at_once_are_answered_in_order() -> None:
    one = b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n"
    last = b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with serving() as port:
        said = raw(port, one + one + last)
    assert said.count(b"HTTP/1.1 404") == 2
    assert said.endswith(b"up 1 # ")


def _half(client: socket.socket) -> None:
    client.sendall(b"GET /metrics HT")


def _takes_nothing(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")


@pytest.mark.parametrize("begin", [_half, _takes_nothing])
def test_who_is_slow_loses_the_connection(begin: Callable[[socket.socket], None]) -> None:
    with serving(patience_s=0.2, most=1) as port, socket.create_connection(("127.0.0.1", port)) as client:
        begin(client)
        _await_place(port)


def _await_place(port: int) -> None:
    """Ask until the server has a place for one more connection."""
    while httpx.get(f"http://127.0.0.1:{port}/metrics").status_code != 200:
        pass


def test_one_too_many_is_told_to_come_again() -> None:
    with serving(most=2) as port:
        held = [http.client.HTTPConnection("127.0.0.1", port, timeout=20) for _ in range(2)]
        for client in held:
            client.request("GET", "/metrics")
            assert client.getresponse().read()
        answer = httpx.get(f"http://127.0.0.1:{port}/metrics")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        for client in held:
            client.close()
        _await_place(port)


def test_stopping_ends_open_connections() -> None:
    with serving() as port:
        client = socket.create_connection(("127.0.0.1", port), timeout=20)
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        assert client.recv(1000)
    with client:
        assert client.recv(1000) == b""
