"""One kept-alive connection to a Prometheus HTTP API; whatever goes wrong comes out as an error of ours."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import TypeVar

import httpx

from gpuworkshop.errors import BadAnswer, PrometheusError, PrometheusUnreachable, QueryError, SettingsError
from gpuworkshop.metrics import answers

STEP = "asking Prometheus"
T = TypeVar("T")


class Connection:
    """`post` and `get` of `/api/v1/…` below `url`, which may have a path of its own (a proxy's prefix)."""

    def __init__(
        self, url: str, *, ca: Path | None, token: str | None, auth: tuple[str, str] | None, timeout_s: float
    ) -> None:
        parsed = _parse(url)
        self.url = str(parsed.copy_with(userinfo=b"")).rstrip("/")
        self.timeout_s = timeout_s
        loopback = _is_loopback(parsed.host)
        headers = {"Accept": "application/json"}
        if loopback:  # there, packing and unpacking costs more than it saves
            headers["Accept-Encoding"] = "identity"
        if token:
            headers["Authorization"] = f"Bearer {token}"
        verify = _trust(ca) if ca else True
        try:
            self._client = httpx.Client(
                auth=auth or _userinfo(parsed),
                headers=headers,
                verify=verify,
                timeout=timeout_s,
                trust_env=not loopback,
            )
        except (ValueError, ImportError) as error:  # a token that is no ASCII, a proxy that httpx cannot use
            raise SettingsError(
                f"no connection to {self.url} can be made: {error}",
                step="opening a Prometheus",
                todo="look at the credentials, and at the proxies in your environment (env | grep -i proxy)",
            ) from error

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def post(self, path: str, form: Mapping[str, str], kind: type[T]) -> tuple[T, answers.Answer[T]]:
        """Data of that kind, and the answer around it, to a query; as a form, which may be of any length."""
        return self._ask("POST", path, form, kind)

    def get(self, path: str, kind: type[T], parameters: Mapping[str, str] | None = None) -> T:
        """Data of that kind, of what the API gives by GET only: names, series."""
        return self._ask("GET", path, parameters or {}, kind)[0]

    def _ask(
        self, method: str, path: str, fields: Mapping[str, str], kind: type[T]
    ) -> tuple[T, answers.Answer[T]]:
        status, body = self._fetch(method, path, fields)
        try:
            answer = answers.read(body, kind)
        except answers.BROKEN as error:
            raise self._bad(status, body, str(error)) from None
        if answer.status == "error":
            said = f"{answer.errorType}: {answer.error}" if answer.errorType else answer.error
            raise QueryError(
                f"Prometheus refuses the query: {said}\nThe query was: {fields.get('query', path)}",
                status=status,
                step=STEP,
                todo="mend the query where the message points to",
                response=answer,
            )
        if answer.data is None:
            raise self._bad(status, body, "it holds no data")
        return answer.data, answer

    def _fetch(self, method: str, path: str, fields: Mapping[str, str]) -> tuple[int, bytearray]:
        """Status and body. The body grows in place: joining chunks would hold it twice."""
        url = f"{self.url}/api/v1/{path}"
        where = {"data": fields} if method == "POST" else {"params": fields}
        body = bytearray()
        try:
            with self._client.stream(method, url, **where) as response:  # type: ignore[arg-type]
                for chunk in response.iter_bytes():
                    body += chunk
                return response.status_code, body
        except httpx.HTTPError as error:
            raise self._failed(error, body) from error

    def _failed(self, error: httpx.HTTPError, body: bytearray) -> PrometheusError:
        if isinstance(error, httpx.TimeoutException):
            return PrometheusUnreachable(
                f"{self.url} did not answer within {self.timeout_s:g} s",
                step=STEP,
                todo="ask for a shorter range or a longer step, or allow more time with timeout_s",
            )
        if isinstance(error, httpx.RemoteProtocolError | httpx.DecodingError):
            return BadAnswer(
                f"the answer of {self.url} broke off or is garbled ({error}); it began {_start(body)}",
                step=STEP,
                todo="ask again; if it stays so, look at the server's log and at proxies in between",
                response=bytes(body),
            )
        certificate = "CERTIFICATE_VERIFY_FAILED" in str(error)
        return PrometheusUnreachable(
            f"no answer from {self.url}: {error}",
            step=STEP,
            todo="name the authority that signed the server's certificate with ca="
            if certificate
            else "is Prometheus running, and is this its address? `./status.sh` shows the lab's",
        )

    def _bad(self, status: int, body: bytearray, why: str) -> BadAnswer:
        todo = {
            401: "give the credentials with token= or auth=",
            403: "these credentials may not read here; give others with token= or auth=",
            404: "is this the address of a Prometheus, with the prefix of its path?",
            503: "Prometheus may still be starting; ask again in a few seconds",
        }.get(
            status, "is this the address of a Prometheus? Look at the server's log and at proxies in between"
        )
        return BadAnswer(
            f"{self.url} answered HTTP {status}, not as Prometheus does: {why}. It begins {_start(body)}",
            status=status,
            step=STEP,
            todo=todo,
            response=bytes(body),
        )


def _parse(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
        host = parsed.host
    except (httpx.InvalidURL, ValueError) as error:  # a host that IDNA refuses
        raise SettingsError(f"{url!r} is no address: {error}", step="opening a Prometheus") from None
    if parsed.scheme not in ("http", "https") or not host:
        raise SettingsError(
            f"{url!r} is no address of a web server",
            step="opening a Prometheus",
            todo="write it like http://127.0.0.1:9090",
        )
    return parsed


def _userinfo(url: httpx.URL) -> tuple[str, str] | None:
    return (url.username, url.password) if url.userinfo else None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _trust(ca: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:  # ssl.SSLError is one
        raise SettingsError(
            f"the certificate authority's file {ca} cannot be used: {error}",
            step="opening a Prometheus",
            todo="give the path of a PEM file",
        ) from error


def _start(body: bytearray) -> str:
    return repr(body[:120].decode(errors="replace")) if body else "with nothing"
