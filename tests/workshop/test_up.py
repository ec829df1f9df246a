"""`gpuworkshop up` and its fellows, as run.sh, status.sh and stop.sh call them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuworkshop.processes import reaper
from gpuworkshop.settings import Settings

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]
ADDRESS = re.compile(r"^(http://127\.0\.0\.1:\d+)/lab/tree/00-first-wave\.ipynb\?token=([0-9a-f]{48})$", re.M)


def gpuworkshop(verb: str, state: Path, settings: Settings, *more: str) -> subprocess.Popen[str]:
    where = {"GPUWORKSHOP_STATE": str(state), "GPUWORKSHOP_HOME": str(settings.root)}
    return subprocess.Popen(
        [sys.executable, "-m", "gpuworkshop", verb, *more],
        env={**os.environ, **where},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=180)
    assert process.returncode == 0, out + err
    return out


@contextmanager
def clone(settings: Settings, folder: Path) -> Iterator[Path]:
    """The state folder of a clone; nothing of it runs on afterwards."""
    folder.mkdir(parents=True)
    (folder / "tools").symlink_to(settings.tools.resolve())
    try:
        yield folder
    finally:
        reaper.reap(folder)


def services(state: Path, settings: Settings) -> dict[str, dict[str, object]]:
    rows = json.loads(said(gpuworkshop("status", state, settings, "--json")))["services"]
    assert all(set(row) == {"name", "state", "url", "pid"} for row in rows)
    return {row["name"]: row for row in rows}


def test_up_again_and_down(settings: Settings, prometheus: Path, tmp_path: Path) -> None:
    with clone(settings, tmp_path / "a clone") as state:
        assert {row["state"] for row in services(state, settings).values()} == {"stopped"}
        first = ADDRESS.search(said(gpuworkshop("up", state, settings)))
        assert first
        url, token = first.groups()
        with urllib.request.urlopen(f"{url}/api/contents?token={token}") as answer:
            names = {each["name"] for each in json.load(answer)["content"]}
        assert {"00-first-wave.ipynb", "08-prometheus-live.ipynb"} <= names
        up = services(state, settings)
        assert {up[name]["state"] for name in ("jupyterlab", "prometheus")} == {"healthy"}

        again = said(gpuworkshop("up", state, settings))
        assert again.count("already runs") == 3
        found = ADDRESS.search(again)
        assert found
        assert found.groups() == (url, token)
        assert services(state, settings) == up

        said(gpuworkshop("down", state, settings))
        assert {row["state"] for row in services(state, settings).values()} == {"stopped"}
        assert reaper.find(state) == []


def test_token_is_in_no_log_and_where_it_is_only_its_owner_can_read(
    settings: Settings, prometheus: Path, tmp_path: Path
) -> None:
    with clone(settings, tmp_path / "clone") as state:
        found = ADDRESS.search(said(gpuworkshop("up", state, settings)))
        assert found
        token = found[2].encode()
        holding = [p for p in state.rglob("*") if p.is_file() and _holds(p, token)]
        assert holding
        private = state / "jupyter"
        assert all(p.is_relative_to(private) for p in holding)
        assert private.stat().st_mode & 0o077 == 0


def _holds(path: Path, text: bytes) -> bool:
    return text in path.read_bytes()


def test_two_at_once_and_two_clones_at_once(settings: Settings, prometheus: Path, tmp_path: Path) -> None:
    with clone(settings, tmp_path / "one") as one, clone(settings, tmp_path / "two") as two:
        running = [gpuworkshop("up", state, settings) for state in (one, one, two)]
        addresses = [ADDRESS.search(said(process)) for process in running]
        assert addresses[0]
        assert addresses[1]
        assert addresses[2]
        assert addresses[0][0] == addresses[1][0]
        assert addresses[0][1] != addresses[2][1]
        first, second = services(one, settings), services(two, settings)
        assert {row["state"] for row in (first | second).values()} == {"healthy"}
        assert not {row["pid"] for row in first.values()} & {row["pid"] for row in second.values()}


def test_catch_up_on_the_command_line_starts_what_it_needs(
    settings: Settings, prometheus: Path, tmp_path: Path
) -> None:
    with clone(settings, tmp_path / "clone") as state:
        assert "Caught up to prometheus-live" in said(
            gpuworkshop("catch-up", state, settings, "prometheus-live")
        )
        assert services(state, settings)["prometheus"]["state"] == "healthy"
