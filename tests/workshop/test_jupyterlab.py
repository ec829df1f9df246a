"""The first notebook as a learner meets it: a real JupyterLab and Chromium, and pictures that move."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuworkshop.processes import groups
from gpuworkshop.settings import Settings
from gpuworkshop.workshop import Workshop, copies, jupyter

playwright_api = pytest.importorskip("playwright.sync_api")

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# The front end's own objects say when the kernel answers; its idle sign appears too early.
READY = """async () => {
  const panel = window.jupyterapp.shell.currentWidget;
  await panel.context.ready;
  await panel.sessionContext.ready;
  await panel.sessionContext.session.kernel.info;
}"""
RUN_ALL = "() => window.jupyterapp.commands.execute('notebook:run-all-cells')"
ERRORS = """() => {
  const cells = window.jupyterapp.shell.currentWidget.content.model.cells;
  const errors = [];
  for (const cell of cells) {
    for (let i = 0; i < (cell.outputs?.length ?? 0); i++) {
      const output = cell.outputs.get(i);
      if (output.type === 'error') errors.push(output.toJSON().evalue);
    }
  }
  return errors;
}"""


def browser_path() -> str | None:
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


@pytest.fixture
def page(request: pytest.FixtureRequest, own: Settings) -> Iterator[Any]:
    """A page of a headless Chromium; on failure what it showed is kept."""
    options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    with playwright_api.sync_playwright() as driver:
        chromium = browser_path() or driver.chromium.executable_path
        if not Path(chromium).exists():
            assert not os.environ.get("CI"), "no Chromium: ./test.sh installs one"
            pytest.skip("no Chromium; ./test.sh installs one where it can")
        browser = driver.chromium.launch(executable_path=chromium, args=options)
        page = browser.new_page(viewport={"width": 1280, "height": 1400})
        failed_before = request.session.testsfailed
        yield page
        if request.session.testsfailed > failed_before:
            kept = own.root / ".workshop" / "screenshots" / f"{request.node.name}.png"
            kept.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=kept)
        browser.close()


@pytest.fixture
def address(ws: Workshop, own: Settings) -> str:
    """The address that `./run.sh` prints, of a JupyterLab that lets the test see its front end."""
    ws.step("three-pods").apply()
    copies.refresh(own)
    config = own.state / "jupyter" / "config" / "jupyter_server_config.json"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('{"LabApp": {"expose_app_in_browser": true}}', encoding="utf-8")
    (service,) = groups.ensure(jupyter.GROUP, own)
    address = jupyter.address(own, service.url)
    assert re.search(r"/lab/tree/00-first-wave\.ipynb\?token=[0-9a-f]{48}$", address)
    return address


def test_the_first_notebook_runs_and_its_pictures_move(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector(".jp-Notebook")
    page.evaluate(READY)
    page.evaluate(RUN_ALL)
    views = page.locator(".widget-image[src]")
    page.wait_for_function("document.querySelectorAll('.widget-image[src]').length >= 3", timeout=180_000)
    assert page.evaluate(ERRORS) == []
    last = views.last
    last.scroll_into_view_if_needed()
    before = last.get_attribute("src")
    page.wait_for_function(
        "([image, before]) => image.getAttribute('src') !== before",
        arg=[last.element_handle(), before],
        timeout=20_000,
    )
    assert "gpu-burn" in page.locator(".jp-Notebook").inner_text()


def test_without_the_token_nothing_is_shown(page: Any, address: str) -> None:
    page.goto(address.split("?")[0])
    page.wait_for_url("**/login?next=*")
    assert page.locator(".jp-Notebook").count() == 0
