"""Port-forwarding through SPDY in a websocket, with a client that goes by the specification or breaks it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
import pytest
from spdy_client import Frame, SpdyClient, data, reset, window_update
from streams_stage import LIMIT_S, echo, serving, stage

from gpuworkshop.lab.api.streams import spdy
from gpuworkshop.lab.api.streams.tunnel import PROTOCOL

PATH = "/api/v1/namespaces/default/pods/web/portforward"
FIN = 1


class TunnelClient:
    """A client's end: it opens a connection's streams, and collects what comes."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self.websocket, self.spdy = websocket, SpdyClient()
        self.frames: list[Frame] = []

    async def send(self, *frames: bytes) -> None:
        await self.websocket.send_bytes(b"".join(frames))

    async def open(self, stream: int, headers: Mapping[str, str], flags: int = 0) -> None:
        await self.send(self.spdy.syn_stream(stream, headers, flags))

    async def connect(self, port: int, request: int = 0) -> tuple[int, int]:
        """The numbers of the error stream and of the data stream."""
        error, carrier = 4 * request + 1, 4 * request + 3
        both = {"port": str(port), "requestid": str(request)}
        await self.open(error, {"streamtype": "error", **both}, FIN)
        await self.open(carrier, {"streamtype": "data", **both})
        return error, carrier

    async def until(self, kind: int, stream: int, flags: int = 0) -> list[Frame]:
        """All frames of the stream up to one of that kind, with those flags."""
        while True:
            found = [frame for frame in self.frames if frame.stream == stream]
            for index, frame in enumerate(found):
                if frame.kind == kind and frame.flags & flags == flags:
                    return found[: index + 1]
            message = await asyncio.wait_for(self.websocket.receive_bytes(), LIMIT_S)
            self.frames += self.spdy.read(message)

    async def text(self, stream: int) -> bytes:
        """All that is said in the stream, to its end."""
        return b"".join(frame.payload for frame in await self.until(0, stream, FIN) if frame.kind == 0)


@asynccontextmanager
async def tunnel() -> AsyncIterator[TunnelClient]:
    async with (
        stage() as server,
        aiohttp.ClientSession(server.url) as session,
        session.ws_connect(PATH, protocols=[PROTOCOL]) as websocket,
    ):
        assert websocket.protocol == PROTOCOL
        yield TunnelClient(websocket)


def test_a_connection_answers_with_both_streams_and_their_ends() -> None:
    async def main() -> None:
        async with serving(echo) as port, tunnel() as client:
            error, carrier = await client.connect(port)
            await client.until(spdy.SYN_REPLY, carrier)
            await client.send(data(carrier, b"hello "), data(carrier, b"there", FIN))
            assert await client.text(carrier) == b"hello there"
            assert await client.text(error) == b""

    asyncio.run(main())


def test_data_that_comes_before_the_connection_stands() -> None:
    async def main() -> None:
        async with serving(echo) as port, tunnel() as client:
            both = {"port": str(port), "requestid": "7"}
            await client.send(
                client.spdy.syn_stream(1, {"streamtype": "data", **both}),
                data(1, b"early", FIN),
                client.spdy.syn_stream(3, {"streamtype": "error", **both}, FIN),
            )
            assert await client.text(1) == b"early"

    asyncio.run(main())


def test_a_client_that_speaks_of_windows_gets_no_more_than_it_grants() -> None:
    sent = bytes(range(256)) * 2000

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.write(sent)

    async def main() -> None:
        async with serving(speak) as port, tunnel() as client:
            _, carrier = await client.connect(port)
            await client.send(window_update(0, 1), window_update(carrier, 1), data(carrier, b"!"))
            got, granted = b"", spdy.INITIAL_WINDOW + 1
            while len(got) < len(sent):
                message = await asyncio.wait_for(client.websocket.receive_bytes(), LIMIT_S)
                got += b"".join(frame.payload for frame in client.spdy.read(message) if frame.kind == 0)
                assert len(got) <= granted
                if len(got) == granted:
                    granted += 50_000
                    await client.send(window_update(0, 50_000), window_update(carrier, 50_000))
            assert got == sent

    asyncio.run(main())


def test_what_the_pod_has_taken_is_granted_anew() -> None:
    async def main() -> None:
        async with serving(echo) as port, tunnel() as client:
            _, carrier = await client.connect(port)
            await client.send(data(carrier, bytes(40_000)))
            for stream in (carrier, 0):
                grant = (await client.until(spdy.WINDOW_UPDATE, stream))[-1]
                assert int.from_bytes(grant.payload) == 40_000

    asyncio.run(main())


def test_a_connection_that_is_reset_ends_in_the_pod_and_leaves_the_others_alone() -> None:
    ended = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        await reader.read()
        ended.set()

    async def main() -> None:
        async with serving(wait) as port, serving(echo) as other, tunnel() as client:
            error, carrier = await client.connect(port)
            _, second = await client.connect(other, request=1)
            await client.until(0, carrier)
            await client.send(reset(carrier))
            await asyncio.wait_for(ended.wait(), LIMIT_S)
            assert await client.text(error) == b""
            await client.send(data(second, b"still here", FIN))
            assert await client.text(second) == b"still here"

    asyncio.run(main())


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"streamtype": "data", "port": "80"},
        {"streamtype": "other", "port": "80", "requestid": "1"},
        {"streamtype": "data", "port": "0", "requestid": "1"},
        {"streamtype": "data", "port": "65536", "requestid": "1"},
        {"streamtype": "data", "port": "http", "requestid": "1"},
        {"streamtype": "data", "requestid": "1"},
    ],
    ids=["none", "no request", "another type", "zero", "too large", "no number", "no port"],
)
def test_streams_that_make_no_sense_are_refused(headers: dict[str, str]) -> None:
    async def main() -> None:
        async with serving(echo) as port, tunnel() as client:
            await client.open(1, headers)
            (refused,) = await client.until(spdy.RST_STREAM, 1)
            assert int.from_bytes(refused.payload) == spdy.REFUSED_STREAM
            _, carrier = await client.connect(port, request=2)
            await client.send(data(carrier, b"on", FIN))
            assert await client.text(carrier) == b"on"

    asyncio.run(main())


def test_a_second_stream_of_the_same_type_or_of_another_port_is_refused() -> None:
    async def main() -> None:
        async with serving(echo) as port, tunnel() as client:
            first = {"streamtype": "error", "port": str(port), "requestid": "1"}
            await client.open(1, first, FIN)
            await client.open(3, first, FIN)
            await client.open(5, {**first, "streamtype": "data", "port": "1"})
            for stream in (3, 5):
                await client.until(spdy.RST_STREAM, stream)
            await client.open(7, {**first, "streamtype": "data"})
            await client.send(data(7, b"mine", FIN))
            assert await client.text(7) == b"mine"

    asyncio.run(main())


def test_what_is_not_spdy_ends_the_websocket() -> None:
    async def main() -> None:
        async with tunnel() as client:
            await client.send(b"\x80\x02\x00\x01\x00\x00\x00\x00")
            (goodbye,) = await client.until(spdy.GOAWAY, 0)
            assert int.from_bytes(goodbye.payload) == spdy.PROTOCOL_ERROR
            await client.websocket.receive()
            assert client.websocket.close_code == aiohttp.WSCloseCode.PROTOCOL_ERROR

    asyncio.run(main())
