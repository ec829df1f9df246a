"""The watch of this node's pods, against a scripted API server: what is known stays, faults are counted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gpuworkshop.exporter import pod_watch as module
from gpuworkshop.exporter.api_server import ApiServer
from gpuworkshop.exporter.devices import Pod
from gpuworkshop.exporter.pod_directory import PodDirectory
from gpuworkshop.exporter.pod_watch import PodWatch, Refused

Answer = Callable[[BaseHTTPRequestHandler], None]


def pod(name: str, version: int = 1, **labels: str) -> dict[str, Any]:
    about = {
        "namespace": "n",
        "name": name,
        "uid": f"uid-{name}",
        "labels": labels,
        "resourceVersion": str(version),
    }
    return {"metadata": about, "status": {"phase": "Running"}}


def said(status: int, *parts: Any) -> Answer:
    """A status, then each part as a line of JSON, or as it is."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.end_headers()
        for part in parts:
            text = part if isinstance(part, str) else json.dumps(part) + "\n"
            handler.wfile.write(text.encode())

    return answer


def listed(*pods: dict[str, Any], version: int = 1, more: str = "") -> Answer:
    about = {"resourceVersion": str(version)} | ({"continue": more} if more else {})
    return said(200, {"kind": "PodList", "metadata": about, "items": list(pods)})


def event(kind: str, about: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": about}


def cut(handler: BaseHTTPRequestHandler) -> None:
    """Half an answer, then the connection is reset."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"type": "ADD')
    handler.wfile.flush()


class Script:
    """Answers one call after the other; `queries` are what was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.queries: list[dict[str, str]] = []
        self.freed = threading.Event()
        self.url = ""

    def hang(self, handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        self.freed.wait(30)

    @contextmanager
    def serving(self) -> Iterator[None]:
        script = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query)
                script.queries.append({name: values[0] for name, values in query.items()})
                script.answers.pop(0)(self)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            self.freed.set()
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture
def script() -> Iterator[Script]:
    made = Script()
    with made.serving():
        yield made


class Watched:
    """A watch that is followed by hand, and what it knows."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.directory = PodDirectory(["*"])
        self.watch = PodWatch(ApiServer(script.url), "node-1", self.directory)

    def follow(self, *answers: Answer) -> str:
        """Give these answers; the cause of the failure, "" for none."""
        self.script.answers += answers
        try:
            self.watch.follow()
        except Exception as error:  # noqa: BLE001 - as the watch's own thread does
            self.watch._failed(error)
            return self.watch._fault
        return ""

    def known(self) -> dict[str, dict[str, str]]:
        return {
            name: dict(shown.labels)
            for name in ("a", "b", "c")
            if (shown := self.directory.shown(Pod("n", name, "c"))) and shown.labels
        }

    def told(self, name: str, **labels: str) -> float:
        for family in self.watch.families():
            for pairs, value in family.samples:
                if family.name == f"gpuworkshop_pod_watch_{name}" and dict(pairs) == labels:
                    return value
        raise AssertionError(name)


@pytest.fixture
def watched(script: Script) -> Watched:
    return Watched(script)


def test_pages_are_listed_and_events_followed_from_there(watched: Watched) -> None:
    changes = said(
        200,
        event("MODIFIED", pod("a", 12, app="new")),
        event("ADDED", pod("c", 13, app="c")),
        event("BOOKMARK", {"metadata": {"resourceVersion": "20"}}),
    )
    first, second = listed(pod("a", app="old"), more="token"), listed(pod("b", app="b"), version=10)
    assert watched.follow(first, second, changes) == ""
    assert watched.known() == {"a": {"app": "new"}, "b": {"app": "b"}, "c": {"app": "c"}}
    assert watched.told("pods") == 3
    assert watched.told("up") == 1
    assert all(query["fieldSelector"] == "spec.nodeName=node-1" for query in watched.script.queries)
    assert watched.script.queries[1]["continue"] == "token"
    assert watched.script.queries[2]["resourceVersion"] == "10"
    assert watched.follow(said(200, event("DELETED", pod("b", 21)))) == ""
    assert watched.script.queries[3]["resourceVersion"] == "20"
    assert watched.told("pods") == 2


def test_gone_lists_anew_be_it_a_status_or_an_event(watched: Watched) -> None:
    gone = {"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}
    assert watched.follow(listed(pod("a", app="1"), pod("b", app="1")), said(200, gone)) == "gone"
    assert watched.known().keys() == {"a", "b"}
    assert watched.told("up") == 0
    assert watched.follow(listed(pod("a", app="2"), version=5), said(410)) == "gone"
    assert watched.known()["a"] == {"app": "2"}
    assert watched.follow(listed(pod("a", app="3"), version=6), said(200)) == ""
    assert watched.told("errors_total", cause="gone") == 2
    assert watched.told("up") == 1


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (said(403), "forbidden"),
        (said(401), "unauthorized"),
        (said(429), "too_many_requests"),
        (said(500), "http_500"),
        (said(200, "not json"), "bad_answer"),
        (said(200, "[1]"), "bad_answer"),
        (said(200, {"type": "ADDED"}), "bad_answer"),
        (cut, "bad_answer"),
    ],
)
def test_a_fault_is_counted_and_what_is_known_stays(watched: Watched, answer: Answer, cause: str) -> None:
    assert watched.follow(listed(pod("a", app="1")), said(200)) == ""
    assert watched.follow(answer) == cause
    assert watched.known() == {"a": {"app": "1"}}
    assert watched.told("errors_total", cause=cause) == 1
    assert watched.follow(said(200, event("MODIFIED", pod("a", 3, app="2")))) == ""
    assert watched.known() == {"a": {"app": "2"}}


def test_a_watch_that_hangs_is_given_up(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HUNG_S", 0.2)
    assert watched.follow(listed(pod("a", app="1")), watched.script.hang) == "timed_out"
    assert watched.known() == {"a": {"app": "1"}}


def test_an_api_server_that_is_not_there_is_refused() -> None:
    watch = PodWatch(ApiServer("http://127.0.0.1:1"), "node-1", PodDirectory())
    with pytest.raises(ConnectionRefusedError):
        watch.follow()


def test_the_thread_ends_at_once_though_a_watch_is_open(script: Script) -> None:
    script.answers += [listed(pod("a", app="1")), script.hang]
    directory = PodDirectory(["app"])
    with PodWatch(ApiServer(script.url), "node-1", directory) as watch:
        assert len(directory) == 1
    assert not watch._thread.is_alive()


def test_a_refusal_has_its_code() -> None:
    assert str(Refused(403, "no")) == "403 no"
