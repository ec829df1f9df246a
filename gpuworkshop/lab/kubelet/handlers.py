"""What probes and hooks ask of a container: an HTTP request, a connection, a command, or time to pass."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import aiohttp


class Asked(Protocol):
    """A container, as far as it can be asked."""

    spec: Mapping[str, Any]

    @property
    def address(self) -> str:
        """Where it listens."""

    async def run_command(self, command: Sequence[str]) -> tuple[int, str]:
        """Run a command in the container: its exit code and what it printed."""


class Failure(Exception):
    """Why it did not answer as it should, in the kubelet's words."""


async def ask(container: Asked, handler: Mapping[str, Any], timeout_s: float | None) -> None:
    """Do what a probe or hook says, within `timeout_s` seconds. Raises Failure."""
    try:
        async with asyncio.timeout(timeout_s):
            for key, do in _KINDS.items():
                if key in handler:
                    await do(container, handler[key] or {})
    except TimeoutError as error:
        raise Failure(_late(container, handler, timeout_s)) from error
    except (OSError, ValueError, aiohttp.ClientError) as error:
        raise Failure(f"{_about(container, handler)}{_why(error)}") from error


async def _http_get(container: Asked, action: Mapping[str, Any]) -> None:
    headers = {each["name"]: each["value"] for each in action.get("httpHeaders") or []}
    async with (
        aiohttp.ClientSession() as session,
        session.get(_url(container, action), headers=headers, ssl=False, allow_redirects=False) as answer,
    ):
        if not 200 <= answer.status < 400:
            raise Failure(f"HTTP probe failed with statuscode: {answer.status}")


async def _connect(container: Asked, action: Mapping[str, Any]) -> None:
    port = port_of(container.spec, action["port"])
    _, writer = await asyncio.open_connection(action.get("host") or container.address, port)
    writer.close()


async def _command(container: Asked, action: Mapping[str, Any]) -> None:
    code, printed = await container.run_command(action.get("command") or [])
    if code:
        raise Failure(printed.strip() or f"command ended with exit code {code}")


async def _sleep(_: Asked, action: Mapping[str, Any]) -> None:
    await asyncio.sleep(float(action.get("seconds") or 0))


_KINDS: dict[str, Callable[[Asked, Mapping[str, Any]], Awaitable[None]]] = {
    "httpGet": _http_get,
    "tcpSocket": _connect,
    "grpc": _connect,
    "exec": _command,
    "sleep": _sleep,
}


def port_of(spec: Mapping[str, Any], port: int | str) -> int:
    """A port by its number, or by its name in the container's list. Raises Failure for an unknown name."""
    if isinstance(port, int) or port.isdecimal():
        return int(port)
    for each in spec.get("ports") or []:
        if each.get("name") == port:
            return int(each["containerPort"])
    raise Failure(f"couldn't find port: {port}")


def _url(container: Asked, action: Mapping[str, Any]) -> str:
    scheme = str(action.get("scheme") or "HTTP").lower()
    where = f"{action.get('host') or container.address}:{port_of(container.spec, action['port'])}"
    return f"{scheme}://{where}/{str(action.get('path') or '/').removeprefix('/')}"


def _late(container: Asked, handler: Mapping[str, Any], timeout_s: float | None) -> str:
    if "exec" in handler:
        return f"command timed out after {timeout_s:g}s"
    wait = " (Client.Timeout exceeded while awaiting headers)" if "httpGet" in handler else ""
    return f"{_about(container, handler)}context deadline exceeded{wait}"


def _about(container: Asked, handler: Mapping[str, Any]) -> str:
    """What was tried, as the kubelet's HTTP client and Go's dialler put it."""
    if action := handler.get("httpGet"):
        return f'Get "{_url(container, action)}": '
    if action := handler.get("tcpSocket") or handler.get("grpc"):
        return (
            f"dial tcp {action.get('host') or container.address}:{port_of(container.spec, action['port'])}: "
        )
    return ""


def _why(error: Exception) -> str:
    system = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(system, OSError) and system.errno == errno.ECONNREFUSED:
        return "connect: connection refused"
    return str(error) or type(error).__name__
