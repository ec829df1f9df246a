"""The chart repositories of the lab, and whether its cluster is healthy, over plain HTTP on loopback.

`helm repo add nvidia http://127.0.0.1:PORT/nvidia` finds stand-ins that carry the real charts' names.
They are packed when they are asked for, from the folders in `deploy/charts`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import yaml
from aiohttp import web

from gpuworkshop.deploy import charts

# The names under which the real repositories are known, with the charts of each.
REPOSITORIES = {
    "nvidia": ("gpu-operator",),
    "prometheus-community": ("kube-prometheus-stack",),
    "gpuworkshop": ("gpu-burn", "gpuworkshop-exporter"),
}
MADE = "2026-01-01T00:00:00Z"


def app(trouble: Callable[[], str]) -> web.Application:
    """The application; `trouble` says what is wrong with the cluster, "" if nothing is."""

    async def healthy(_: web.Request) -> web.Response:
        wrong = trouble()
        return web.Response(text=wrong or "ok", status=503 if wrong else 200)

    made = web.Application()
    made.router.add_get("/healthz", healthy)
    made.router.add_get("/{repository}/index.yaml", _index)
    made.router.add_get("/{repository}/{file}", _archive)
    return made


async def _index(request: web.Request) -> web.Response:
    names = REPOSITORIES.get(request.match_info["repository"])
    if names is None:
        raise web.HTTPNotFound(text=f"the repositories are {', '.join(REPOSITORIES)}")
    entries = {name: [_entry(name)] for name in names}
    index = {"apiVersion": "v1", "entries": entries, "generated": MADE}
    return web.Response(text=yaml.safe_dump(index, sort_keys=False), content_type="application/yaml")


async def _archive(request: web.Request) -> web.Response:
    for name in REPOSITORIES.get(request.match_info["repository"], ()):
        if request.match_info["file"] == _file_name(name):
            return web.Response(body=archive(name), content_type="application/gzip")
    raise web.HTTPNotFound(text="there is no such chart")


def _entry(name: str) -> dict[str, object]:
    about = _metadata(name)
    return {
        **about,
        "created": MADE,
        "digest": hashlib.sha256(archive(name)).hexdigest(),
        "urls": [_file_name(name)],
    }


def _metadata(name: str) -> dict[str, str]:
    about: dict[str, str] = yaml.safe_load((charts.path(name) / "Chart.yaml").read_text(encoding="utf-8"))
    return about


def _file_name(name: str) -> str:
    return f"{name}-{_metadata(name)['version']}.tgz"


@cache
def archive(name: str) -> bytes:
    """The packed chart; the same bytes for the same files."""
    folder = charts.path(name)
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                _add(tar, path, f"{name}/{path.relative_to(folder).as_posix()}")
    return packed.getvalue()


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    content = path.read_bytes()
    about = tarfile.TarInfo(name)
    about.size, about.mode = len(content), 0o644
    tar.addfile(about, io.BytesIO(content))
