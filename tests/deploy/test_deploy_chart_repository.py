"""The chart repositories over HTTP: an index that helm reads, archives that are always the same bytes."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import tarfile
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import yaml
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from gpuworkshop.deploy import charts
from gpuworkshop.lab import charts as repository

NAMES = ["gpu-operator", "kube-prometheus-stack", "gpu-burn"]


def fetch(*paths: str, trouble: Callable[[], str] = str) -> list[tuple[int, bytes]]:
    """Status and body of each path."""

    async def ask() -> list[tuple[int, bytes]]:
        async with TestServer(repository.app(trouble)) as server, ClientSession() as session:
            found = []
            for path in paths:
                async with session.get(server.make_url(path)) as answer:
                    found.append((answer.status, await answer.read()))
            return found

    work: Awaitable[list[tuple[int, bytes]]] = ask()
    return asyncio.run(work)  # type: ignore[arg-type]


def index(name: str) -> dict[str, Any]:
    ((status, body),) = fetch(f"/{name}/index.yaml")
    assert status == 200
    found: dict[str, Any] = yaml.safe_load(body)
    return found


@pytest.mark.parametrize(
    ("name", "listed"),
    [
        ("nvidia", ["gpu-operator"]),
        ("prometheus-community", ["kube-prometheus-stack"]),
        ("gpuworkshop", ["gpu-burn", "gpuworkshop-exporter"]),
    ],
)
def test_an_index_lists_its_charts_with_their_digest(name: str, listed: list[str]) -> None:
    found = index(name)
    assert found["apiVersion"] == "v1"
    assert list(found["entries"]) == listed
    for chart in listed:
        (entry,) = found["entries"][chart]
        ((status, body),) = fetch(f"/{name}/{entry['urls'][0]}")
        assert status == 200
        assert hashlib.sha256(body).hexdigest() == entry["digest"]
        assert (entry["name"], entry["apiVersion"]) == (chart, "v2")
        assert entry["urls"] == [f"{chart}-{entry['version']}.tgz"]


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_holds_the_folder(name: str) -> None:
    folder = charts.path(name)
    with tarfile.open(fileobj=io.BytesIO(repository.archive(name))) as tar:
        held = {member.name: member.mode for member in tar.getmembers() if member.isfile() and not member.uid}
        script = tar.extractfile(f"{name}/Chart.yaml")
        assert script is not None
        assert script.read() == (folder / "Chart.yaml").read_bytes()
    files = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    assert held.keys() == {f"{name}/{path.as_posix()}" for path in files if "__pycache__" not in path.parts}
    assert set(held.values()) == {0o644}


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_is_always_the_same_bytes(name: str) -> None:
    first = repository.archive(name)
    repository.archive.cache_clear()
    assert repository.archive(name) == first
    assert gzip.decompress(first)[257:262] == b"ustar"


def test_what_is_not_there() -> None:
    paths = ["/none/index.yaml", "/nvidia/none.tgz", "/none/gpu-operator.tgz", "/nvidia/../index.yaml", "/"]
    assert [status for status, _ in fetch(*paths)] == [404] * len(paths)
    ((_, body),) = fetch("/none/index.yaml")
    assert body == b"the repositories are nvidia, prometheus-community, gpuworkshop"


def test_health_is_told_on_the_same_port() -> None:
    assert fetch("/healthz") == [(200, b"ok")]
    assert fetch("/healthz", trouble=lambda: "it is starting") == [(503, b"it is starting")]
