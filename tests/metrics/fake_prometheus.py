"""A web server that answers like a Prometheus, or as oddly as a test wants."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Reply = tuple[int, bytes]


class Request:
    """One request as the server saw it."""

    def __init__(self, handler: BaseHTTPRequestHandler) -> None:
        self.path = urlsplit(handler.path).path
        self.headers = dict(handler.headers.items())
        self.client = handler.client_address
        length = int(handler.headers.get("Content-Length", 0))
        form = handler.rfile.read(length).decode() if length else urlsplit(handler.path).query
        self.fields = {name: values[0] for name, values in parse_qs(form).items()}


class Fake:
    """Answers each request with what `answer` says, and keeps the requests."""

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.released = threading.Event()
        self.url = ""


@contextmanager
def serving(answer: Callable[[Request], Reply], tls: ssl.SSLContext | None = None) -> Iterator[Fake]:
    fake = Fake(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            request = Request(self)
            fake.requests.append(request)
            status, body = fake.answer(request)
            cut = body.removesuffix(b"<cut>")
            self.send_response(status)
            self.send_header("Content-Length", str(len(cut) + (1000 if cut != body else 0)))
            self.end_headers()
            self.wfile.write(cut)
            self.close_connection = cut != body

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None: ...

    server = Server(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    fake.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield fake
    finally:
        fake.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def success(data: Any, **more: Any) -> Reply:
    return 200, json.dumps({"status": "success", "data": data, **more}).encode()


def matrix(*series: dict[str, Any], **more: Any) -> Reply:
    return success({"resultType": "matrix", "result": list(series)}, **more)


def vector(*series: dict[str, Any], **more: Any) -> Reply:
    return success({"resultType": "vector", "result": list(series)}, **more)
