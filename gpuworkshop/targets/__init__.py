"""How a cluster comes to be, is looked at, and goes.

`open_target(name, settings)` gives a `Target`; this version has the `lab`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpuworkshop.errors import SettingsError
from gpuworkshop.lab.services import build
from gpuworkshop.lab.stage import GROUP
from gpuworkshop.processes.supervisor import Service
from gpuworkshop.settings import Settings
from gpuworkshop.targets.base import PodOnGpu, Target
from gpuworkshop.targets.lab import LabTarget

__all__ = ["PodOnGpu", "Target", "open_target", "supervised_groups"]


def open_target(name: str, settings: Settings) -> Target:
    """The target of that name. Raises SettingsError for one that this version cannot open."""
    if name == "lab":
        return LabTarget(settings)
    raise SettingsError(
        f"the target {name!r} is not in this version, which has only the lab",
        step="opening the workshop",
        todo="use Workshop.open(target='lab'), or set TARGET=lab in .env",
    )


def supervised_groups() -> Mapping[str, Callable[[Settings], list[Service]]]:
    """The groups of processes that targets keep running, and what lists the services of each."""
    return {GROUP: build}
