"""A release site on loopback, and scripts that pose as tools."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gpuworkshop.versions import Release, Source, Tool


@dataclass
class Site:
    """Serves `bodies`. A path in `cut` gets half of its body, and the connection is closed; one in `held`
    gets half of it and then nothing until `go_on` is set, `half_sent` telling when that is so."""

    url: str = ""
    bodies: dict[str, bytes] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    held: set[str] = field(default_factory=set)
    half_sent: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        if request.path not in self.bodies:
            request.send_error(404)
            return
        body = self.bodies[request.path]
        half = len(body) // 2
        request.send_response(200)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body[:half])
        request.wfile.flush()
        if request.path in self.held:
            self.half_sent.set()
            self.go_on.wait(60)
        if request.path not in self.cut:
            request.wfile.write(body[half:])

    def release(self, path: str, content: bytes, *, member: str = "helm") -> Release:
        """Put a tar.gz with `content` as its one file at `path`; the release that points to it."""
        self.bodies[path] = archive = tar_gz(member, content)
        digest = hashlib.sha256(archive).hexdigest()
        return Release("9.9.9", self.url + path, digest, members={"helm": member})


@pytest.fixture
def site() -> Iterator[Site]:
    """An HTTP server on loopback."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                site.answer(self)
            except ConnectionError:  # the client has gone, as some tests want it to
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield site
        site.go_on.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def path_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is all of the PATH."""
    folder = tmp_path / "on the path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def tar_gz(member: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo(member)
        info.size = len(content)
        archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def script() -> Callable[..., Path]:
    """Writes a shell script that poses as a tool."""

    def write(path: Path, *lines: str) -> Path:
        path.write_text("\n".join(("#!/bin/sh", *lines, "")), encoding="utf-8")
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def helm_from() -> Callable[..., Tool]:
    """A tool `helm`, at least 3.17.0, with the sources given."""

    def make(*sources: Source) -> Tool:
        return Tool("helm", ("helm",), ("3.17.0",), sources, date(2026, 1, 1))

    return make
