"""Errors about a service: made from its log, and carried from the supervisor to whoever started it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpuworkshop import errors
from gpuworkshop.errors import DiskFull, PortInUse, ServiceDied, ServiceError, WorkshopError
from gpuworkshop.processes.children import last_lines

_CAUSES = (
    ("address already in use", PortInUse, "end what uses that port, or choose another, and start again"),
    ("no space left on device", DiskFull, "make room on the disk and start again"),
    (
        "opening storage failed",
        ServiceDied,
        "its stored samples are damaged: move .workshop/lab/prometheus/data away, and start again",
    ),
)


def service_died(name: str, why: str, log: Path) -> ServiceError:
    """The error for a service that `why` says ended: a ServiceDied, or what its log shows to be the cause."""
    tail = last_lines(log)
    kind, todo = next(
        ((kind, todo) for text, kind, todo in _CAUSES if text in f"{why}\n{tail}".lower()),
        (ServiceDied, "mend what these lines name, and start again"),
    )
    return kind(f"{name} {why}. {quoted(log, tail)}", step=f"starting {name}", todo=todo)


def quoted(log: Path, tail: str) -> str:
    """The last lines of a log, with the log's path."""
    return f"The last lines of {log}:\n{tail}" if tail else f"Its log, {log}, is empty."


def to_wire(error: WorkshopError) -> dict[str, Any]:
    """What `from_wire` makes the same error of; `response` stays behind."""
    return {"kind": type(error).__name__, "seen": error.seen, "step": error.step, "todo": error.todo}


def from_wire(record: dict[str, Any]) -> WorkshopError:
    """The error that another process raised."""
    kind: type[WorkshopError] = getattr(errors, record["kind"], ServiceError)
    return kind(record["seen"], step=record["step"], todo=record["todo"])
