"""Upgrading a request to a websocket, as Kubernetes' streams use them: binary messages, a channel first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from aiohttp import WSMsgType, web

from gpuworkshop.lab.api.problems import bad_request

LARGEST_MESSAGE = 32 << 20  # as in the real one


def protocols_of(request: web.Request) -> list[str]:
    """The subprotocols that the client offers, best first."""
    offered = request.headers.getall("Sec-WebSocket-Protocol", [])
    return [name.strip() for line in offered for name in line.split(",")]


async def upgrade(request: web.Request, known: Sequence[str]) -> web.WebSocketResponse:
    """Open the websocket with the first subprotocol that the client offers and the lab knows.

    Its `ws_protocol` says which. ApiError 400 for anything but a websocket, SPDY's own upgrade among it.
    """
    wanted = request.headers.get("Upgrade", "").lower()
    if wanted.startswith("spdy"):
        raise bad_request(
            "the lab's API server streams over websockets, as kubectl does since 1.31, and not over SPDY: "
            "unset KUBECTL_REMOTE_COMMAND_WEBSOCKETS and KUBECTL_PORT_FORWARD_WEBSOCKETS"
        )
    if wanted != "websocket":
        raise bad_request("Upgrade request required")
    offered = protocols_of(request)
    if not set(offered) & set(known):
        raise bad_request(
            f"unable to negotiate protocol: client supports {offered}, server accepts {list(known)}"
        )
    websocket = web.WebSocketResponse(protocols=known, max_msg_size=LARGEST_MESSAGE, compress=False)
    await websocket.prepare(request)
    return websocket


async def messages(websocket: web.WebSocketResponse) -> AsyncIterator[bytes]:
    """What the client sends, until it goes; the Python client sends text as text. Empty ones are left out."""
    async for message in websocket:
        if message.type is WSMsgType.TEXT:
            payload = str(message.data).encode()
        elif message.type is WSMsgType.BINARY:
            payload = bytes(message.data)
        else:
            continue
        if payload:
            yield payload
