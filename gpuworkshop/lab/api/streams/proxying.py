"""The proxy to what a pod or a service serves by HTTP: `…/pods/NAME:PORT/proxy/PATH`, and of services."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict
from yarl import URL

from gpuworkshop.lab.api.objects import Object, name_of
from gpuworkshop.lab.api.problems import ApiError, bad_request
from gpuworkshop.lab.api.streams import dialing

CONNECT_S = 30.0
_NO_LABS = IPv4Network("127.0.0.0/12")  # this machine's own; the subnets of labs begin at 127.16
_HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}
# The API server keeps the learner's token to itself, and names the pod rather than itself as the host.
_OWN = {"authorization", "host", "expect"}
_NO_DEFAULTS = (hdrs.USER_AGENT, hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.CONTENT_TYPE)


def parse_target(text: str) -> tuple[str, str, str]:
    """Scheme ("http" unless it says https), name and port ("" if none) of `[scheme:]name[:port]`."""
    parts = text.split(":")
    scheme, name, port = parts if len(parts) == 3 else ["", *parts, ""][:3]
    if len(parts) > 3 or not name or scheme not in ("", "http", "https"):
        raise bad_request(f'invalid proxy request "{text}"')
    return scheme or "http", name, port


def resolve_pod(pod: Object, port: str) -> tuple[str, int]:
    """The pod's address and the port: the one asked for, else its first, else 80."""
    address = (pod.get("status") or {}).get("podIP", "")
    if not address:
        raise bad_request("address not allowed")
    ports = [port["containerPort"] for spec in pod["spec"]["containers"] for port in spec.get("ports") or []]
    return address, _number(port) if port else next(iter(ports), 80)


def check_address(host: str) -> None:
    """ApiError 400 for what is not a lab's address: a proxy must lead nowhere else."""
    try:
        address = IPv4Address(host)
    except ValueError:
        address = IPv4Address(0)
    if not address.is_loopback or address in _NO_LABS:
        raise bad_request("address not allowed")


def resolve_service(
    service: Object, endpoints: Object | None, port: str, is_a_pods: Callable[[Mapping[str, Any]], bool]
) -> tuple[str, int]:
    """The address of one of a service's ready endpoints, and its port for the named one of the service.

    Of the addresses only those count that are a pod's, or whoever writes Endpoints could reach anything.
    """
    name = name_of(service)
    if port.isascii() and port.isdigit():
        ports = service["spec"].get("ports") or []
        found = next((entry for entry in ports if entry["port"] == int(port)), None)
        if found is None:
            raise _unavailable(f'no service port {int(port)} found for service "{name}"')
        port = found.get("name") or ""
    reached = [
        (address["ip"], int(entry["port"]))
        for subset in (endpoints or {}).get("subsets") or []
        for entry in subset.get("ports") or []
        if (entry.get("name") or "") == port
        for address in subset.get("addresses") or []
        if is_a_pods(address)
    ]
    if not reached:
        raise _unavailable(f'no endpoints available for service "{name}"')
    return random.choice(reached)  # noqa: S311


async def proxy(
    request: web.Request, host: str, port: int, path: str, *, scheme: str = "http"
) -> web.StreamResponse:
    """Pass the request on to `path` there, and the answer back, both as they come.

    ApiError 503 where nobody answers. The path has no leading slash; a last one is taken from the request.
    """
    if not path and not request.path.endswith("/") and request.method in (hdrs.METH_GET, hdrs.METH_HEAD):
        # So that what a page links to by a relative path is looked for below the proxy.
        location = request.rel_url.with_path(request.path + "/", keep_query=True)
        return web.Response(status=301, headers={hdrs.LOCATION: str(location)})
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
    connector = aiohttp.TCPConnector(force_close=True, ssl=False)
    async with aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=_NO_DEFAULTS,
    ) as session:
        try:
            answer = await session.request(
                request.method,
                _target(request, host, port, path, scheme),
                headers=_passed(request.headers, _OWN),
                data=request.content if request.can_read_body else None,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise _unavailable(f"error trying to reach service: {_why(error, host, port)}") from error
        async with answer:
            return await _pass_back(request, answer, path)


async def _pass_back(request: web.Request, answer: aiohttp.ClientResponse, path: str) -> web.StreamResponse:
    headers = _passed(answer.headers, set())
    if hdrs.LOCATION in headers:
        headers[hdrs.LOCATION] = _below_proxy(request, answer.url, headers[hdrs.LOCATION], path)
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    await response.prepare(request)
    try:
        async for piece in answer.content.iter_any():
            await response.write(piece)
    except aiohttp.ClientPayloadError:
        # The answer was cut off, and the client must not take it for whole.
        if request.transport is not None:
            request.transport.abort()
    return response


def _target(request: web.Request, host: str, port: int, path: str, scheme: str) -> URL:
    slash = "/" if path and request.path.endswith("/") and not path.endswith("/") else ""
    url = URL.build(scheme=scheme, host=host, port=port, path=f"/{path}{slash}")
    asked = request.rel_url.raw_query_string
    return URL(f"{url}?{asked}", encoded=True) if asked else url


def _passed(headers: Mapping[str, str], own: set[str]) -> CIMultiDict[str]:
    named = {name.strip().lower() for name in headers.get(hdrs.CONNECTION, "").split(",")}
    dropped = _HOP_BY_HOP | own | named
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)


def _below_proxy(request: web.Request, asked: URL, location: str, path: str) -> str:
    """A redirection within what is served there is one within the proxy."""
    url = URL(location)
    if url.absolute and url.origin() == asked.origin():
        location = str(url.relative())
    elif url.absolute or not location.startswith("/"):
        return location
    whole = request.path.rstrip("/")
    return whole.removesuffix(path.rstrip("/")).rstrip("/") + location


def _why(error: Exception, host: str, port: int) -> str:
    match error:
        case aiohttp.ServerTimeoutError() | TimeoutError():
            return dialing.why(TimeoutError(), host, port)
        case aiohttp.ClientConnectorError():
            return dialing.why(error.os_error, host, port)
        case aiohttp.ServerDisconnectedError():
            return "EOF"
        case aiohttp.ClientOSError():
            return f"read tcp {host}:{port}: read: {dialing.reason(error)}"
    return f"net/http: HTTP/1.x transport connection broken: {error}"


def _number(port: str) -> int:
    if not (port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 1 << 16):
        raise bad_request(f'invalid port "{port}"')
    return int(port)


def _unavailable(message: str) -> ApiError:
    return ApiError(503, "ServiceUnavailable", message)
