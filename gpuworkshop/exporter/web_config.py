"""TLS and passwords, by the web configuration file that Prometheus and its exporters share.

    tls_server_config:
      cert_file: tls.crt
      key_file: tls.key
      client_auth_type: RequireAndVerifyClientCert
      client_ca_file: ca.crt
    basic_auth_users:
      prometheus: $2y$10$...       # bcrypt, such as htpasswd -nBC 10 "" makes

Paths are taken from the file's own folder. Certificates that are replaced are used from the next connection
on. The format: https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpuworkshop.errors import WebConfigError
from gpuworkshop.exporter.http1 import Request, Response

_STEP = "reading the web configuration"
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENTS = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_TLS_KEYS = ("cert_file", "key_file", "client_auth_type", "client_ca_file", "min_version", "max_version")
_MOST_KEPT = 100
_REFUSED = Response(
    b"wrong or no user and password\n", 401, [("Content-Type", "text/plain"), ("WWW-Authenticate", "Basic")]
)


class Users:
    """Who may ask, by name and bcrypt hash."""

    def __init__(self, hashes: Mapping[str, bytes]) -> None:
        self._hashes = hashes
        # bcrypt takes a tenth of a second by design: a password that was right once is known again by this.
        self._right: set[bytes] = set()
        # Whoever guesses names takes as long as one who guesses passwords.
        self._nobody = next(iter(hashes.values()), b"")

    async def refuse(self, request: Request) -> Response | None:
        """The answer to a request that may not be made; None if it may."""
        user, password = _credentials(request.headers.get("authorization", ""))
        digest = hashlib.sha256(user.encode() + b"\0" + password).digest()
        if digest in self._right:
            return None
        if not await asyncio.to_thread(self._matches, user, password):
            return _REFUSED
        if len(self._right) >= _MOST_KEPT:
            self._right.clear()
        self._right.add(digest)
        return None

    def _matches(self, user: str, password: bytes) -> bool:
        import bcrypt

        # Longer ones are cut off by bcrypt, and refused by its library.
        right = bcrypt.checkpw(password[:72], self._hashes.get(user, self._nobody))
        return right and user in self._hashes


@dataclass(frozen=True)
class WebConfig:
    """How to serve; without `tls` in plain HTTP, without `users` to anybody."""

    tls: ssl.SSLContext | None = None
    users: Users | None = None


def read(path: Path) -> WebConfig:
    """What the file says. Raises WebConfigError."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _wrong(f"{path} cannot be read: {error}") from error
    sections = _mapping(found or {}, str(path), ("tls_server_config", "basic_auth_users"))
    users = _users(sections.get("basic_auth_users") or {})
    tls = sections.get("tls_server_config")
    return WebConfig(_Tls(tls, path.parent).context() if tls else None, users)


@dataclass
class _Tls:
    """The section about TLS."""

    section: Any
    folder: Path
    _read: tuple[float, ...] = ()
    _context: ssl.SSLContext | None = field(default=None)

    def context(self) -> ssl.SSLContext:
        """The context, made anew when its files have changed."""
        section = _mapping(self.section, "tls_server_config", _TLS_KEYS)
        files = {key: self._path(section, key) for key in ("cert_file", "key_file", "client_ca_file")}
        try:
            times = tuple(path.stat().st_mtime for path in files.values() if path)
            if self._context is None or times != self._read:
                self._context, self._read = _context(section, files), times
        except (OSError, ssl.SSLError) as error:
            name = f"{error.filename}: " if isinstance(error, OSError) and error.filename else ""
            raise _wrong(f"tls_server_config: {name}{error.strerror or error}") from error
        self._context.sni_callback = self._next_client
        return self._context

    def _next_client(self, client: ssl.SSLSocket | ssl.SSLObject, *_: object) -> None:
        try:
            client.context = self.context()
        except WebConfigError:
            return  # half replaced: the old ones go on

    def _path(self, section: Mapping[str, Any], key: str) -> Path | None:
        value = section.get(key)
        if value is None and key != "client_ca_file":
            raise _wrong(f"tls_server_config: {key} is missing")
        return self.folder / str(value) if value else None


def _context(section: Mapping[str, Any], files: Mapping[str, Path | None]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _one_of(section, "min_version", _VERSIONS, "TLS12")
    context.maximum_version = _one_of(section, "max_version", _VERSIONS, "TLS13")
    context.load_cert_chain(str(files["cert_file"]), files["key_file"])
    clients = _one_of(section, "client_auth_type", _CLIENTS, "NoClientCert")
    if clients is not ssl.CERT_NONE:
        if files["client_ca_file"] is None:
            raise _wrong("tls_server_config: client_auth_type wants a client_ca_file")
        context.load_verify_locations(files["client_ca_file"])
    context.verify_mode = clients
    return context


def _users(section: Any) -> Users | None:
    hashes = {}
    for name, value in _mapping(section, "basic_auth_users", None).items():
        if not isinstance(value, str) or not value.startswith(("$2a$", "$2b$", "$2y$")):
            raise _wrong(f"basic_auth_users: the value of {name} is no bcrypt hash")
        hashes[str(name)] = value.encode()
    if not hashes:
        return None
    try:
        import bcrypt

        bcrypt.checkpw(b"", next(iter(hashes.values())))
    except ImportError as error:
        raise _wrong(
            "passwords cannot be checked without the package bcrypt", "pip install bcrypt"
        ) from error
    except ValueError as error:
        raise _wrong("basic_auth_users: a value is no whole bcrypt hash") from error
    return Users(hashes)


def _mapping(found: Any, where: str, known: tuple[str, ...] | None) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise _wrong(f"{where}: a mapping of `key: value` belongs here")
    for key in found:
        if known is not None and key not in known:
            raise _wrong(f"{where}: {key!r} is not served here", f"the keys are {', '.join(known)}")
    return found


def _one_of(section: Mapping[str, Any], key: str, choices: Mapping[str, Any], default: str) -> Any:
    value = section.get(key) or default
    if value not in choices:
        raise _wrong(f"tls_server_config: {key} is {value!r}", f"write one of {', '.join(choices)}")
    return choices[value]


def _credentials(header: str) -> tuple[str, bytes]:
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return "", b""
    try:
        user, _, password = base64.b64decode(value, validate=True).partition(b":")
        return user.decode(), password
    except (binascii.Error, UnicodeDecodeError):
        return "", b""


def _wrong(seen: str, todo: str = "mend the file that --web-config-file names") -> WebConfigError:
    return WebConfigError(seen, step=_STEP, todo=todo)
