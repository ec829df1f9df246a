"""What many tests share: settings in a temporary folder, and one real Prometheus for all of them.

Fetched tools are kept: in the folder that GPUWORKSHOP_TEST_TOOLS names, else in the checkout's own cache
when there is one, else in the temporary folder.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

pytest_plugins = ["own_cluster", "own_lab", "release_site", "stored_history"]

CHECKOUT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A state folder of the test run's own, with a space in its path."""
    state = tmp_path_factory.mktemp("the state")
    named = os.environ.get("GPUWORKSHOP_TEST_TOOLS")
    kept = Path(named) if named else CHECKOUT / ".workshop" / "tools"
    if named:
        kept.mkdir(parents=True, exist_ok=True)
    if kept.is_dir():
        (state / "tools").symlink_to(kept.resolve())
    return Settings(root=CHECKOUT, state=state)


@pytest.fixture(scope="session")
def prometheus(settings: Settings) -> Path:
    """A real Prometheus with Kubernetes discovery."""
    return find_or_fetch("prometheus", settings)


@pytest.fixture(scope="session")
def promtool(settings: Settings) -> Path:
    """The promtool of that Prometheus."""
    return find_or_fetch("promtool", settings)
