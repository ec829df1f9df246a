"""What is known of a container: its state, its last one, how often it was started; as its status shows it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from gpuworkshop.lab.kubelet.statuses import image_id

State = dict[str, dict[str, Any]]


class Record:
    """`previous` is the container's status from before this process was started, if it has one."""

    def __init__(self, spec: Mapping[str, Any], previous: Mapping[str, Any] | None) -> None:
        previous = previous or {}
        self.ready = self.started = False
        self.restarts = int(previous.get("restartCount") or 0)
        self.id = str(previous.get("containerID") or "")
        self.state: State = previous.get("state") or {"waiting": {"reason": "ContainerCreating"}}
        self.last: State = previous.get("lastState") or {}
        self._spec = spec

    @property
    def running(self) -> bool:
        """Whether it runs now."""
        return "running" in self.state

    @property
    def exit_code(self) -> int | None:
        """The exit code that it ended with, None while it has not."""
        code = (self.state.get("terminated") or {}).get("exitCode")
        return None if code is None else int(code)

    def status(self) -> dict[str, Any]:
        """Its entry in the pod's `containerStatuses`."""
        status = {
            "name": self._spec["name"],
            "image": self._spec["image"],
            "imageID": image_id(self._spec["image"]) if self.id else "",
            "ready": self.ready,
            "started": self.started,
            "restartCount": self.restarts,
            "state": self.state,
            "lastState": self.last,
        }
        return {**status, "containerID": self.id} if self.id else status

    def begin(self, now: str) -> None:
        """It was started."""
        if self.id:
            self.restarts += 1
            self.last = _over(self.state, now) or self.last
        self.id = f"containerd://{secrets.token_hex(32)}"
        self.state = {"running": {"startedAt": now}}
        self.ready = self.started = False

    def wait(self, reason: str, message: str) -> None:
        """It waits to be started, or to be started again."""
        if "terminated" in self.state:
            self.last = self.state
        self.state = {"waiting": {"reason": reason, "message": message}}

    def end(self, code: int, reason: str, message: str, now: str) -> None:
        """It has ended."""
        begun = (self.state.get("running") or {}).get("startedAt")
        over = {"exitCode": code, "reason": reason, "startedAt": begun, "finishedAt": now}
        over |= {"message": message} if message else {}
        self.state = {"terminated": {**over, "containerID": self.id}}
        self.ready = self.started = False


def _over(state: State, now: str) -> State:
    """The state of the last life, whose end nobody saw if the lab was killed meanwhile."""
    if running := state.get("running"):
        unknown = {"exitCode": 255, "reason": "Unknown", "startedAt": running["startedAt"], "finishedAt": now}
        return {"terminated": unknown}
    return state if "terminated" in state else {}
