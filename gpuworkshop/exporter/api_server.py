"""How to reach the cluster's API server: as a pod does, by its service account, or by a kubeconfig.

Only GET is ever asked. The standard library does it, since a Kubernetes client would double the exporter's
memory. Tokens are read anew for each call: the kubelet renews them in place.
"""

from __future__ import annotations

import base64
import http.client
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from gpuworkshop.errors import ExporterError

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
CONNECT_S = 5.0
_STEP = "finding the API server"


@dataclass(frozen=True)
class ApiServer:
    """An API server. `token_file` comes before `token`; `context` is None for plain http."""

    url: str
    context: ssl.SSLContext | None = None
    token: str = ""
    token_file: Path | None = None

    def connect(self, read_s: float) -> http.client.HTTPConnection:
        """A connection, made within `CONNECT_S`, of which each read may take `read_s`. Raises OSError."""
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "http":
            connection = http.client.HTTPConnection(host, parts.port or 80, timeout=CONNECT_S)
        else:
            connection = http.client.HTTPSConnection(
                host, parts.port or 443, timeout=CONNECT_S, context=self.context
            )
        connection.connect()
        connection.sock.settimeout(read_s)
        return connection

    def get(
        self, connection: http.client.HTTPConnection, path: str, query: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        """The answer, its body not read yet. Raises OSError or HTTPException."""
        headers = {"Accept": "application/json"}
        token = self.token_file.read_text("utf-8").strip() if self.token_file else self.token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        prefix = urlsplit(self.url).path.rstrip("/")
        connection.request("GET", f"{prefix}{path}?{urlencode(query)}", headers=headers)
        return connection.getresponse()


def in_cluster(environment: Mapping[str, str], account: Path = ACCOUNT) -> ApiServer | None:
    """The server of the cluster that this runs in; None if it runs in none. Raises ExporterError."""
    host, port = (environment.get(f"KUBERNETES_SERVICE_{each}", "") for each in ("HOST", "PORT"))
    if not host or not (account / "token").exists():
        return None
    authority = f"[{host}]" if ":" in host else host
    try:
        context = ssl.create_default_context(cafile=str(account / "ca.crt"))
    except OSError as error:
        raise _bad(f"{account / 'ca.crt'} is no certificate: {error}", "mount the service account") from error
    return ApiServer(f"https://{authority}:{port or 443}", context, token_file=account / "token")


def of_kubeconfig(path: Path) -> ApiServer:
    """The server of a kubeconfig's current context. Raises ExporterError."""
    import yaml

    try:
        config: Any = yaml.safe_load(path.read_text("utf-8"))
        context = _named(config, "context", config["current-context"])
        cluster = _named(config, "cluster", context["cluster"])
        user = _named(config, "user", context["user"])
        url = str(cluster["server"])
        trust = _context(cluster, user, path.parent) if url.startswith("https:") else None
    except (OSError, ValueError, KeyError, TypeError, StopIteration, yaml.YAMLError) as error:
        seen = f"{path} cannot be used: {type(error).__name__}: {error}"
        raise _bad(seen, "give a kubeconfig that kubectl can use") from error
    if "exec" in user or "auth-provider" in user:
        raise _bad(
            f"{path} gets its token from another program, which this exporter does not start",
            "give a kubeconfig with a token or a client certificate, such as a service account's",
        )
    token_file = user.get("tokenFile")
    return ApiServer(url, trust, user.get("token", ""), path.parent / token_file if token_file else None)


def find(kubeconfig: Path | None, account: Path) -> ApiServer | None:
    """The named kubeconfig's server, else the cluster's own, else that of $KUBECONFIG; None without any."""
    if kubeconfig:
        return of_kubeconfig(kubeconfig)
    if server := in_cluster(os.environ, account):
        return server
    inherited = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0]
    return of_kubeconfig(Path(inherited)) if inherited and Path(inherited).exists() else None


def _named(config: Any, kind: str, name: str) -> Any:
    return next(each[kind] for each in config[f"{kind}s"] if each["name"] == name) or {}


def _context(cluster: Any, user: Any, folder: Path) -> ssl.SSLContext:
    authority = _data(cluster, "certificate-authority", folder)
    context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    if cluster.get("insecure-skip-tls-verify"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    certificate, key = (_data(user, name, folder) for name in ("client-certificate", "client-key"))
    if certificate and key:
        # Python takes a client's certificate from a file only; this one is gone again at once.
        with tempfile.NamedTemporaryFile(suffix=".pem") as both:
            both.write(certificate + b"\n" + key)
            both.flush()
            context.load_cert_chain(both.name)
    return context


def _data(found: Any, name: str, folder: Path) -> bytes:
    """What stands in the kubeconfig itself, or in the file that it names; nothing if neither is there."""
    if f"{name}-data" in found:
        return base64.b64decode(found[f"{name}-data"])
    return (folder / found[name]).read_bytes() if name in found else b""


def _bad(seen: str, todo: str) -> ExporterError:
    return ExporterError(seen, step=_STEP, todo=todo)
