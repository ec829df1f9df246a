"""Live views in a real kernel: what a front end hears, and what nbclient saves."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient

VIEW_MIME = "application/vnd.jupyter.widget-view+json"

SETUP = f"""
import sys, threading
sys.path.insert(0, {str(Path(__file__).parent)!r})
from stored import two_pods, unreachable
from gpuworkshop import live
import time
source = two_pods()
threads = lambda: [t.name for t in threading.enumerate() if t.name.startswith('live view')]


def until(true):
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        view.wait(0.02)


def until_it_says(words):
    until(lambda: words in view.controls.status.value)


def another_picture():
    before = view.snapshot().png
    until(lambda: view.snapshot().png != before)


async def another_picture_awaited():
    before = view.snapshot().png
    while view.snapshot().png == before:
        await view.run_for(0.02)
"""


class FrontEnd:
    """Runs cells and hears all that the kernel publishes, of whatever cell it says that it comes from."""

    def __init__(self, client: BlockingKernelClient) -> None:
        self._client = client

    def run(self, cell: str, press: str = "") -> list[dict[str, Any]]:
        """Run a cell, press the toggle button of that model meanwhile, and return what was heard."""
        request, heard = self._client.execute(cell), list[dict[str, Any]]()
        if press:
            state = {"method": "update", "state": {"value": True}, "buffer_paths": []}
            session = self._client.session
            self._client.shell_channel.send(session.msg("comm_msg", {"comm_id": press, "data": state}))
        while True:
            message = self._client.get_iopub_msg(timeout=60)
            heard.append(message)
            ended = message["content"].get("execution_state") == "idle"
            if ended and message["parent_header"].get("msg_id") == request:
                return heard


def pictures(heard: list[dict[str, Any]]) -> list[bytes]:
    return [bytes(each["buffers"][0]) for each in heard if each["msg_type"] == "comm_msg" and each["buffers"]]


def told(heard: list[dict[str, Any]]) -> list[str]:
    states = [each["content"]["data"].get("state", {}) for each in heard if each["msg_type"] == "comm_msg"]
    return [state["value"] for state in states if isinstance(state.get("value"), str)]


def result(heard: list[dict[str, Any]]) -> dict[str, Any]:
    [found] = [each["content"]["data"] for each in heard if each["msg_type"] == "execute_result"]
    return dict(found)


def code(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": source}


@pytest.fixture(scope="module")
def front_end() -> Iterator[FrontEnd]:
    manager, client = start_new_kernel(kernel_name="python3")
    front_end = FrontEnd(client)
    front_end.run(SETUP)
    yield front_end
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_the_picture_moves_while_a_cell_blocks_and_while_it_awaits(front_end: FrontEnd) -> None:
    shown = front_end.run("view = live.view('wave', source, window_s=10, every_s=0.1); view")
    assert VIEW_MIME in result(shown)
    front_end.run("view.wait_for_data()")
    for cell in ("another_picture(); another_picture()", "await another_picture_awaited()"):
        seen = pictures(front_end.run(cell))
        assert seen
        assert len(set(seen)) == len(seen)
        assert all(picture.startswith(b"\x89PNG") for picture in seen)


def test_a_cell_run_again_leaves_one_thread(front_end: FrontEnd) -> None:
    for _ in range(3):
        front_end.run("view = live.view('wave', source, every_s=0.1); view.wait_for_data(); view")
    assert result(front_end.run("threads()"))["text/plain"] == "['live view wave']"
    assert result(front_end.run("live.stop_all(); threads()"))["text/plain"] == "[]"


def test_an_exception_in_the_thread_reaches_the_learner(front_end: FrontEnd) -> None:
    front_end.run("view = live.view('wave', source, every_s=0.1); view.wait_for_data()")
    said = told(front_end.run("source.fault = unreachable(); until_it_says('alert')"))
    assert "nothing answers at http://127.0.0.1:9. Start it." in said[-1]
    said = told(front_end.run("source.fault = None; until_it_says('back')"))
    assert re.search("back since .*, after an outage since", said[-1])


def test_the_buttons_work_while_a_cell_awaits(front_end: FrontEnd) -> None:
    front_end.run("view = live.view('wave', source, every_s=0.1); view.wait_for_data()")
    model = result(front_end.run("view.controls.pause.comm.comm_id"))["text/plain"].strip("'")
    heard = front_end.run("while not view.controls.pause.value: await view.run_for(0.05)", press=model)
    assert any("paused at" in text for text in told(heard))
    assert result(front_end.run("view.controls.pause.description"))["text/plain"] == "'Resume'"


def test_a_wrong_name_is_told_without_a_traceback(front_end: FrontEnd) -> None:
    heard = front_end.run("live.view('wave', source, 'gpu utilsation')")
    [error] = [each["content"] for each in heard if each["msg_type"] == "error"]
    assert "did you mean GPU utilisation" in "".join(error["traceback"])
    assert "Traceback" not in "".join(error["traceback"])


def test_headless_the_saved_notebook_holds_the_picture_and_stays_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GPUWORKSHOP_HEADLESS", "1")
    cells = (
        SETUP,
        "view = live.view('wave', source, quantities=['power', 'tensor activity'], every_s=0.1); view",
        "await view.run_for(0.5)",
        "view.snapshot()",
    )
    notebook = nbformat.from_dict(
        {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [*map(code, cells)]}
    )
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    for cell in (1, 3):
        [output] = notebook.cells[cell].outputs
        assert b64decode(output["data"]["image/png"]).startswith(b"\x89PNG")
        assert "power: default/a gpu 0" in output["data"]["text/plain"]
        assert "simulated: H200 trace" in output["metadata"]["image/png"]["alt"]
    assert len(str(notebook)) < 200_000
