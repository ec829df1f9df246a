"""A small HTTP/1.1 server: h11 reads and writes the protocol, asyncio the sockets.

Not by a web framework: those take some 20 MiB of memory, and the exporter runs on every node. A handler is a
plain function that waits for nothing. A client that is slow, or sends what is no HTTP, costs its own
connection and no more; there are at most `most` of them, and one more is told to come again.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import h11

# Prometheus keeps its connection from one scrape to the next, up to minutes.
IDLE_S = 300.0
# From a request's first byte to its last, and for an answer to be taken.
PATIENCE_S = 10.0
MOST = 64
_READ = 64 * 1024
_LARGEST_HEAD, _LARGEST_BODY = 16 * 1024, 64 * 1024


@dataclass(frozen=True)
class Request:
    """A request; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Response:
    """An answer; the length is added."""

    body: bytes
    status: int = 200
    headers: Sequence[tuple[str, str]] = (("Content-Type", "text/plain; charset=utf-8"),)


Handler = Callable[[Request], Response]
# The answer to a request that may not be made, or None.
Guard = Callable[[Request], Awaitable[Response | None]]
BUSY = Response(b"too many connections\n", 503, [("Content-Type", "text/plain"), ("Retry-After", "1")])


class Server:
    """Answers by `handle` what comes to GET and HEAD."""

    def __init__(
        self,
        handle: Handler,
        *,
        tls: ssl.SSLContext | None = None,
        refuse: Guard | None = None,
        most: int = MOST,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._handle = handle
        self._refuse = refuse
        self._tls = tls
        self._most = most
        self._patience_s = patience_s
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, which for port 0 is any free one. Raises OSError."""
        patience_s = self._patience_s if self._tls else None
        self._server = await asyncio.start_server(
            self._accept, host, port, ssl=self._tls, ssl_handshake_timeout=patience_s
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        self._open.add(task)
        busy = len(self._open) > self._most
        try:
            await _Conversation(reader, writer, self._patience_s).run(
                _busy if busy else self._answer, once=busy
            )
        except (OSError, TimeoutError, h11.ProtocolError):
            pass  # the client's own affair
        except asyncio.CancelledError:
            pass  # the server stops, and asyncio would report it as an error of this callback
        finally:
            self._open.discard(task)
            writer.transport.abort()

    async def _answer(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            return Response(b"GET is all that is served\n", 405, [("Allow", "GET, HEAD")])
        refusal = await self._refuse(request) if self._refuse else None
        return refusal or self._handle(request)


async def _busy(_: Request) -> Response:
    return BUSY


class _Conversation:
    """One connection: requests and answers by turns."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, patience_s: float) -> None:
        self._reader, self._writer = reader, writer
        self._patience_s = patience_s
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST_HEAD)

    async def run(self, answer: Callable[[Request], Awaitable[Response]], *, once: bool) -> None:
        """Until the client has enough; `once`: until the first answer."""
        while await self._has_request():
            try:
                async with asyncio.timeout(self._patience_s):
                    request = await self._request()
            except h11.RemoteProtocolError as error:
                if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                    await self._send(Response(f"{error}\n".encode(), error.error_status_hint), close=True)
                break
            await self._send(await answer(request), close=once, head=request.method == "HEAD")
            if once or self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                break
            self._http.start_next_cycle()
        await self._hang_up()

    async def _hang_up(self) -> None:
        """Close such that the last answer arrives: a socket that is closed with unread data is reset."""
        async with asyncio.timeout(self._patience_s):
            if self._writer.can_write_eof():
                self._writer.write_eof()
                while await self._reader.read(_READ):
                    pass
            self._writer.close()
            await self._writer.wait_closed()

    async def _has_request(self) -> bool:
        """Wait for the first bytes of a request; False if none comes."""
        if self._http.trailing_data[0]:
            return True
        async with asyncio.timeout(IDLE_S):
            data = await self._reader.read(_READ)
        if data:
            self._http.receive_data(data)
        return bool(data)

    async def _request(self) -> Request:
        found, length = Request("", ""), 0
        while not isinstance(event := self._http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    raise h11.RemoteProtocolError("no body is taken here", error_status_hint=417)
                self._http.receive_data(await self._reader.read(_READ))
            elif isinstance(event, h11.Request):
                headers = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
                path = event.target.decode("latin-1").partition("?")[0]
                found = Request(event.method.decode("ascii"), path, headers)
            elif isinstance(event, h11.Data):
                length += len(event.data)
                if length > _LARGEST_BODY:
                    raise h11.RemoteProtocolError("the request is too long", error_status_hint=413)
            else:
                raise ConnectionAbortedError("the client has gone in the middle of a request")
        return found

    async def _send(self, response: Response, *, close: bool, head: bool = False) -> None:
        headers = [*response.headers, ("Content-Length", str(len(response.body)))]
        if close:
            headers.append(("Connection", "close"))
        send = self._http.send
        parts = [send(h11.Response(status_code=response.status, headers=headers))]
        if not head:
            parts.append(send(h11.Data(data=response.body)))
        parts.append(send(h11.EndOfMessage()))
        self._writer.write(b"".join(part or b"" for part in parts))
        async with asyncio.timeout(self._patience_s):
            await self._writer.drain()
