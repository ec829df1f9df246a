"""The log of a container, as text that goes on while it is followed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator

from aiohttp import web

from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object, name_of
from gpuworkshop.lab.api.problems import Cause, invalid
from gpuworkshop.lab.api.runtime import LogOptions, Runtime
from gpuworkshop.lab.api.streams import containers, query

_LOG_OPTIONS = Kind("", "v1", "PodLogOptions", "")
PATIENCE_S = 0.2


async def log(request: web.Request, runtime: Runtime, pod: Object) -> web.StreamResponse:
    """Stream it. The server has to cancel a handler whose client has gone (`handler_cancellation`)."""
    options = _options(request, pod)
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    if not pod["spec"].get("nodeName"):
        await response.prepare(request)
        return response
    pieces = runtime.log(pod, options)
    # A log that can't be read says so at its first piece, and is then answered by a Status. A client that
    # follows a silent one gets its headers in any case.
    first = asyncio.ensure_future(anext(pieces, b""))
    try:
        await asyncio.wait({first}, timeout=PATIENCE_S)
        if first.done():
            first.result()
        await response.prepare(request)
        await _send(response, first, pieces)
    finally:
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
    return response


async def _send(
    response: web.StreamResponse, first: asyncio.Future[bytes], pieces: AsyncIterator[bytes]
) -> None:
    await response.write(await first)
    async for piece in pieces:
        await response.write(piece)


def _options(request: web.Request, pod: Object) -> LogOptions:
    asked = request.query
    tail, limit = query.number(asked, "tailLines"), query.number(asked, "limitBytes")
    seconds, since = query.number(asked, "sinceSeconds"), query.time(asked, "sinceTime")
    causes = []
    if tail is not None and tail < 0:
        causes.append(_wrong("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        causes.append(_wrong("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and since is not None:
        words = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        causes.append(Cause("FieldValueForbidden", words, ""))
    elif seconds is not None and seconds < 1:
        causes.append(_wrong("sinceSeconds", seconds, "must be greater than 0"))
    if causes:
        raise invalid(_LOG_OPTIONS, name_of(pod), causes)
    container = asked.get("container", "")
    return LogOptions(
        container=containers.named(pod, container) if container else containers.only(pod),
        follow=query.flag(asked, "follow"),
        previous=query.flag(asked, "previous"),
        timestamps=query.flag(asked, "timestamps"),
        tail_lines=tail,
        since=since if seconds is None else time.time() - seconds,
        limit_bytes=limit,
    )


def _wrong(field: str, value: int, why: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {value}: {why}", field)
