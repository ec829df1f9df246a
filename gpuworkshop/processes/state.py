"""What a supervisor writes down and everybody else reads: one JSON file a group.

A reader always sees a whole file: it is written beside its place and then moved there. Whether its writer
still lives is not taken from the file but from /proc, by process id and start time together.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from gpuworkshop.processes.reaper import Process

State = Literal["starting", "healthy", "unhealthy", "restarting", "stopped"]


@dataclass(frozen=True)
class ServiceStatus:
    """How one service is. `pid` is None while no process runs; `detail` says why it is not healthy."""

    name: str
    state: State
    url: str = ""
    pid: int | None = None
    detail: str = ""
    group: str = ""
    health_url: str = ""


@dataclass(frozen=True)
class GroupState:
    """One group: its supervisor, and its services in the order in which they were started."""

    supervisor: Process
    services: tuple[ServiceStatus, ...]


def write(path: Path, supervisor: Process, services: Sequence[ServiceStatus]) -> None:
    """Replace the group's file at `path`."""
    record = {**supervisor._asdict(), "services": [asdict(service) for service in services]}
    replace_file(path, json.dumps(record, indent=1))


def read(path: Path) -> GroupState | None:
    """The group's file at `path`; None when there is none, or it is no such file."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        services = tuple(ServiceStatus(**service) for service in record["services"])
        return GroupState(Process(record["pid"], record["born"]), services)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def replace_file(path: Path, text: str) -> None:
    """Write `text` to `path`, readable by its owner only; a reader sees the old file or the new one."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
