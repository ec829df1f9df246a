"""What a pod's STATUS, READY and RESTARTS are: the most telling of its containers' states, in a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuworkshop.lab.api.ages import age
from gpuworkshop.lab.api.objects import Object, condition, is_deleted

Container = Mapping[str, Any]
ENDED = ("Succeeded", "Failed")


@dataclass
class Restarts:
    """How often containers were started again, and when the last of them had ended."""

    count: int = 0
    last: str = ""

    def add(self, container: Container) -> None:
        """Count a container's restarts."""
        self.count += container.get("restartCount") or 0
        ended = ((container.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        self.last = max(self.last, ended)

    def text(self, now: float) -> str:
        """`3 (2m ago)`."""
        return f"{self.count} ({age(self.last, now)} ago)" if self.count and self.last else str(self.count)


@dataclass
class PodSummary:
    """A pod as a line of `kubectl get pods` shows it."""

    status: str = ""
    ready: int = 0
    total: int = 0
    restarts: Restarts = field(default_factory=Restarts)


def summary(pod: Object) -> PodSummary:
    """The summary of a pod."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {
        container["name"]
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    phase = status.get("phase") or ""
    found = PodSummary(status.get("reason") or phase, total=len(spec.get("containers") or ()) + len(sidecars))
    scheduled = condition(pod, "PodScheduled")
    if scheduled and scheduled.get("reason") == "SchedulingGated":
        found.status = "SchedulingGated"
    of_sidecars = Restarts()
    waits = _add_init_containers(
        found, spec, status.get("initContainerStatuses") or (), sidecars, of_sidecars
    )
    if not waits or _is_true(pod, "Initialized"):
        found.restarts = of_sidecars
        _add_containers(found, status.get("containerStatuses") or (), _is_true(pod, "Ready"))
    if is_deleted(pod) and status.get("reason") == "NodeLost":
        found.status = "Unknown"
    elif is_deleted(pod) and phase not in ENDED:
        found.status = "Terminating"
    return found


def _add_init_containers(
    found: PodSummary,
    spec: Mapping[str, Any],
    statuses: Sequence[Container],
    sidecars: set[str],
    of_sidecars: Restarts,
) -> bool:
    """Go through the init containers up to the one that the pod waits for; whether it does wait."""
    for index, container in enumerate(statuses):
        found.restarts.add(container)
        is_sidecar = container.get("name") in sidecars
        if is_sidecar:
            of_sidecars.add(container)
        ended, waiting = _state(container, "terminated"), _state(container, "waiting")
        if ended is not None and not ended.get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            found.ready += bool(container.get("ready"))
            continue
        why = (waiting or {}).get("reason") or ""
        if ended is not None:
            found.status = f"Init:{_end(ended)}"
        elif why and why != "PodInitializing":
            found.status = f"Init:{why}"
        else:
            found.status = f"Init:{index}/{len(spec.get('initContainers') or ())}"
        return True
    return False


def _add_containers(found: PodSummary, statuses: Sequence[Container], is_ready: bool) -> None:
    """Go through the containers from the last to the first, whose state then counts."""
    running = False
    for container in reversed(statuses):
        found.restarts.add(container)
        ended, waiting = _state(container, "terminated"), _state(container, "waiting")
        if waiting is not None and waiting.get("reason"):
            found.status = waiting["reason"]
        elif ended is not None:
            found.status = _end(ended)
        elif container.get("ready") and _state(container, "running") is not None:
            running = True
            found.ready += 1
    if found.status == "Completed" and running:
        found.status = "Running" if is_ready else "NotReady"


def _state(container: Container, name: str) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (container.get("state") or {}).get(name)
    return found


def _end(ended: Mapping[str, Any]) -> str:
    """How a container has ended."""
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _is_true(obj: Object, kind: str) -> bool:
    found = condition(obj, kind)
    return found is not None and found.get("status") == "True"
