"""The HTTP side: `/metrics`, `/health` and `/`, from the sampler's last snapshot.

A snapshot is rendered, and compressed, once, however many scrapes ask for it. Requests are answered one
after the other in one event loop, by `http1`, and no answer waits for a GPU.
"""

from __future__ import annotations

import asyncio
import errno
import gzip
import html
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from gpuworkshop.errors import ExporterError, PortInUse
from gpuworkshop.exporter.devices import Family
from gpuworkshop.exporter.http1 import Request, Response, Server
from gpuworkshop.exporter.rendering import CONTENT_TYPE, Renderer
from gpuworkshop.exporter.sampler import Sampler, Snapshot
from gpuworkshop.exporter.web_config import WebConfig

_STEP = "starting the exporter"
OPEN = WebConfig()


@dataclass(frozen=True)
class Address:
    """Where to listen. `str` gives the address as it stands in a URL."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class _Body:
    """What a scrape of one snapshot is answered with."""

    def __init__(self, snapshot: Snapshot, plain: bytes, *, stale: bool) -> None:
        self.of = (snapshot, stale)
        self.plain = plain

    @cached_property
    def zipped(self) -> bytes:
        # Level 1: text that repeats itself so much packs well at any level.
        return gzip.compress(self.plain, 1)


class Pages:
    """The handlers."""

    def __init__(self, sampler: Sampler, renderer: Renderer) -> None:
        self._sampler = sampler
        self._renderer = renderer
        self._body: _Body | None = None
        self._scrapes, self._scrapes_s = 0, 0.0

    def answer(self, request: Request) -> Response:
        """The page that is asked for."""
        routes = {"/metrics": self.metrics, "/health": self.health, "/": self.home}
        route = routes.get(request.path)
        return route(request) if route else Response(b"there is /metrics, /health and /\n", 404)

    def metrics(self, request: Request) -> Response:
        """The exposition text, gzipped for those who take that."""
        began = time.perf_counter()
        try:
            return self._exposition(request)
        finally:
            self._scrapes += 1
            self._scrapes_s += time.perf_counter() - began

    def _exposition(self, request: Request) -> Response:
        body = self._current()
        headers = [("Content-Type", CONTENT_TYPE), ("Vary", "Accept-Encoding")]
        if _takes_gzip(request.headers.get("accept-encoding", "")):
            return Response(body.zipped, headers=[*headers, ("Content-Encoding", "gzip")])
        return Response(body.plain, headers=headers)

    def health(self, _: Request) -> Response:
        """200 while the GPUs are being read, else 503."""
        if stale_s := self._sampler.stale_s():
            return Response(f"stale: the GPUs were last read {stale_s:.0f} s ago\n".encode(), 503)
        return Response(b"ok\n")

    def home(self, _: Request) -> Response:
        """A page for people."""
        gpus = "".join(f"<li>{line}</li>" for line in self._gpu_lines())
        page = (
            "<!doctype html><title>gpuworkshop exporter</title><h1>gpuworkshop exporter</h1>"
            f'<p><a href="/metrics">/metrics</a> · <a href="/health">/health</a></p><ul>{gpus}</ul>\n'
        )
        return Response(page.encode(), headers=[("Content-Type", "text/html; charset=utf-8")])

    def _gpu_lines(self) -> list[str]:
        lines = []
        for held in self._sampler.snapshot.devices:
            device = held.reading.device
            who = ", ".join(f"{pod.namespace}/{pod.pod}" for pod in held.pods) or "no pod"
            part = f" {device.instance.profile} {device.instance.id}" if device.instance else ""
            lines.append(html.escape(f"GPU {device.index}{part}: {device.model}, {who}"))
        return lines

    def _current(self) -> _Body:
        snapshot, stale = self._sampler.snapshot, bool(self._sampler.stale_s())
        if self._body is None or self._body.of != (snapshot, stale):
            own = [*self._sampler.families(), *self._families()]
            self._body = _Body(snapshot, self._renderer.render(snapshot, own, stale=stale), stale=stale)
        return self._body

    def _families(self) -> list[Family]:
        """The scrapes before this snapshot's first."""
        return [
            Family("gpuworkshop_scrapes_total", "counter", "Scrapes that were answered.",
                   [((), float(self._scrapes))]),
            Family("gpuworkshop_scrape_duration_seconds_total", "counter", "Time that answering them took.",
                   [((), self._scrapes_s)]),
        ]  # fmt: skip


def _takes_gzip(accepted: str) -> bool:
    for choice in accepted.split(","):
        name, _, quality = choice.replace(" ", "").partition(";q=")
        if name in ("gzip", "*"):
            return quality not in ("0", "0.0", "0.00", "0.000")
    return False


async def serve(
    pages: Pages, address: Address, ready: Callable[[Address], None], web: WebConfig = OPEN
) -> None:
    """Serve until SIGTERM or Ctrl-C; `ready` is told the address once it answers (port 0: any free one).

    Raises PortInUse, or ExporterError if the address is not to be had.
    """
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    server = Server(pages.answer, tls=web.tls, refuse=web.users.refuse if web.users else None)
    try:
        ready(Address(address.host, await _listen(server, address)))
        await stopped.wait()
    finally:
        await server.stop()


async def _listen(server: Server, address: Address) -> int:
    try:
        return await server.start(address.host, address.port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"something else listens on {address}",
                step=_STEP,
                todo="give another port with --listen (port 0 takes any free one), or end the other program",
            ) from error
        raise ExporterError(
            f"cannot listen on {address}: {error.strerror or error}",
            step=_STEP,
            todo="give an address of this machine with --listen, such as 127.0.0.1:9400",
        ) from error
