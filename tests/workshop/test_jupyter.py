"""Where JupyterLab listens, and the address that is printed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpuworkshop.settings import Settings
from gpuworkshop.workshop import jupyter


@pytest.fixture
def fresh(settings: Settings, tmp_path: Path) -> Settings:
    return replace(settings, state=tmp_path / "state")


@pytest.mark.parametrize(
    ("host", "reached_at"),
    [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("::", "[::1]")],
)
def test_the_address_can_be_opened(fresh: Settings, host: str, reached_at: str) -> None:
    (service,) = jupyter.build(replace(fresh, jupyter_host=host, jupyter_port=18888))
    assert service.url == f"http://{reached_at}:18888"
    assert f"--ServerApp.ip={host}" in service.command


def test_the_port_is_kept_from_start_to_start(fresh: Settings) -> None:
    assert jupyter.build(fresh)[0].url == jupyter.build(fresh)[0].url


def test_each_start_has_a_new_token_and_no_command_line_shows_it(fresh: Settings) -> None:
    (first,), (second,) = jupyter.build(fresh), jupyter.build(fresh)
    assert first.env["JUPYTER_TOKEN"] != second.env["JUPYTER_TOKEN"]
    assert not any(first.env["JUPYTER_TOKEN"] in word for word in first.command)


def test_the_token_is_read_from_the_servers_own_record(fresh: Settings) -> None:
    runtime = fresh.state / "jupyter" / "runtime"
    runtime.mkdir(parents=True)
    (runtime / "jpserver-1.json").write_text("{half")
    (runtime / "jpserver-2.json").write_text(json.dumps({"port": 1, "token": "other"}))
    assert jupyter.address(fresh, "http://127.0.0.1:18888") == ""
    (runtime / "jpserver-3.json").write_text(json.dumps({"port": 18888, "token": "mine"}))
    assert jupyter.address(fresh, "http://127.0.0.1:18888").endswith("/00-first-wave.ipynb?token=mine")
