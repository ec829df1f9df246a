"""Where the texts come from: files, the exporter's own address, or the ConfigMaps of a cluster.

A file may be a manifest with ConfigMaps in it; what is wanted is then taken out of them. The exporter is
asked as Prometheus asks it, for OpenMetrics first: some exporters answer a browser differently.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import yaml

from gpuworkshop.errors import CwAgentError

NAMESPACE = "amazon-cloudwatch"
CONFIG_MAPS = {"prometheus-config": "prometheus.yaml", "prometheus-cwagentconfig": "cwagentconfig.json"}
ACCEPT = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
MOST_BYTES = 50_000_000
LIMIT_S = 20.0
_PAIR = re.compile(r'\s*([^=,\s]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^,]*))\s*(?:,|$)')


def is_url(where: str) -> bool:
    """Whether `where` is an address and no file."""
    return where.startswith(("http://", "https://"))


def read_metrics(where: str) -> bytes:
    """A metrics page from a file or an address. Raises CwAgentError."""
    if not is_url(where):
        return _read(where)
    try:
        return _fetched(where)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        todo = "is it the exporter's address, with /metrics, and does it run? Try it with curl"
        raise _failed(f"{where} gives no metrics page: {error}", todo) from error


def read_text(where: str, key_end: str) -> str:
    """A configuration from a file; of a manifest the ConfigMaps' entry whose key ends with `key_end`.

    Raises CwAgentError.
    """
    body = _read(where)
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise _failed(f"{where}, line {line}: it is not UTF-8", "save it as UTF-8 text") from error
    return _from_config_maps(text, key_end) or text


def read_cluster(kubectl: Path, context: str | None = None) -> tuple[str, str]:
    """Prometheus's and the agent's configuration from the cluster's ConfigMaps. Raises CwAgentError."""
    found = []
    for name, key in CONFIG_MAPS.items():
        data = _config_map(kubectl, name, context)
        if key not in data:
            raise _failed(
                f"the ConfigMap {name} in {NAMESPACE} has no {key}, only {', '.join(data) or 'nothing'}",
                "give the configuration as a file",
            )
        found.append(data[key])
    return found[0], found[1]


def parse_target(text: str) -> dict[str, str]:
    """`label=value,…` as labels; a value with a comma stands in double quotes. Raises ValueError."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("what is no UTF-8 is not label=value")
    labels: dict[str, str] = {}
    at = 0
    while at < len(text):
        if (match := _PAIR.match(text, at)) is None:
            raise ValueError(f"{text[at : at + 40]!r} is not label=value")
        name, quoted, plain = match.groups()
        labels[name] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else plain.strip()
        at = match.end()
    return labels


def _fetched(url: str) -> bytes:
    """The page at `url`; on loopback past any proxy. A server that only trickles is given up too."""
    body = bytearray()
    until = time.monotonic() + LIMIT_S
    host = urlsplit(url).hostname or ""
    loopback = host in ("localhost", "::1") or host.startswith("127.")
    with (
        httpx.Client(timeout=LIMIT_S, follow_redirects=True, trust_env=not loopback) as client,
        client.stream("GET", url, headers={"Accept": ACCEPT}) as answer,
    ):
        answer.raise_for_status()
        for chunk in answer.iter_bytes():
            body += chunk
            if len(body) > MOST_BYTES:
                raise ValueError(f"it sends more than {MOST_BYTES} bytes")
            if time.monotonic() > until:
                raise ValueError(f"it is not complete after {LIMIT_S:g} s")
    return bytes(body)


def _read(where: str) -> bytes:
    path = Path(where)
    if path.stat().st_size > MOST_BYTES:
        raise _failed(f"{where} has more than {MOST_BYTES} bytes", "is it the right file?")
    return path.read_bytes()


def _from_config_maps(text: str, key_end: str) -> str:
    if "ConfigMap" not in text:
        return ""
    try:
        objects = list(yaml.safe_load_all(text))
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError):
        return ""
    for each in objects:
        if (
            isinstance(each, Mapping)
            and each.get("kind") == "ConfigMap"
            and isinstance(each.get("data"), Mapping)
        ):
            for key, value in each["data"].items():
                if str(key).endswith(key_end) and isinstance(value, str):
                    return value
    return ""


def _config_map(kubectl: Path, name: str, context: str | None) -> dict[str, str]:
    words = ["get", "configmap", name, "--namespace", NAMESPACE, "-o", "json"]
    command = [str(kubectl), *(["--context", context] if context else []), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise _failed(f"kubectl gave no answer within {LIMIT_S:g} s", "is the cluster up?") from error
    if done.returncode:
        todo = "is this the right cluster (--context), and is the agent deployed? Else give files"
        raise _failed(f"kubectl {' '.join(words)}: {done.stderr.strip()[-1000:]}", todo)
    return dict(json.loads(done.stdout).get("data") or {})


def _failed(seen: str, todo: str) -> CwAgentError:
    return CwAgentError(seen, step="reading what is to be explained", todo=todo)
