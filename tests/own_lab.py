"""A workshop of the test run's own: a state folder, and in it a real lab with a real Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpuworkshop.processes import groups
from gpuworkshop.settings import Settings
from gpuworkshop.workshop import Workshop


@pytest.fixture(scope="module")
def own(settings: Settings, prometheus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings with a state folder of this module's own. Whatever runs there ends with the module."""
    state = tmp_path_factory.mktemp("own state")
    (state / "tools").symlink_to(settings.tools.resolve())
    own = replace(settings, state=state)
    yield own
    groups.stop(own)


@pytest.fixture(scope="module")
def ws(own: Settings) -> Iterator[Workshop]:
    """The workshop on a lab that is up."""
    workshop = Workshop.open("lab", own)
    verdict = workshop.step("lab").apply()
    assert verdict.ok, str(verdict)
    yield workshop
    workshop.close()
