"""Which pod a process belongs to, by the control group that the kernel names in `/proc/PID/cgroup`.

The kubelet makes a group for each pod, named after its UID, and the container runtime one in it for each
container, named after its id. How the names are written depends on the cgroup version, on the driver
(cgroupfs or systemd, which writes underscores for dashes) and on the runtime:

    /kubepods/burstable/pod<uid>/<id>
    /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod<uid>.slice/cri-containerd-<id>.scope
    /kubepods.slice/kubepods-pod<uid>.slice/crio-<id>.scope            cri-o; docker-<id>.scope with Docker
    /system.slice/containerd.service/kubepods-pod<uid>.slice:cri-containerd:<id>
    /kubelet.slice/kubelet-kubepods.slice/…/kubelet-kubepods-pod<uid>.slice/cri-containerd-<id>.scope   kind
    /../../kubepods-besteffort-pod<uid>.slice/…      seen from within another group's namespace

A static pod's UID is a hash of 32 digits. Podman's groups (`libpod-<id>`) belong to no pod.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

_UID = r"[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32}"
_POD = re.compile(rf"(?:^|[/-])pod(?P<uid>{_UID})(?=\.slice|[/:\s]|$)")
_CONTAINER = re.compile(r"(?:^|[/:-])(?P<id>[0-9a-f]{64})(?=\.scope|[/:\s]|$)")
# The kernel's number of the first namespace of process ids, the machine's own.
_HOSTS_NAMESPACE = "pid:[4026531836]"

GONE, UNREADABLE, REUSED, NO_POD = "gone", "unreadable", "reused", "no_pod"


@dataclass(frozen=True)
class Group:
    """A pod's UID, and the id of the container in it; "" if the process is in none."""

    uid: str
    container_id: str = ""


def group_of(text: str) -> Group | None:
    """The innermost pod of a `/proc/PID/cgroup`, and the container there; None for a process of no pod."""
    found = [group for line in text.splitlines() if (group := _group(line))]
    # With version 1 each controller has a line, and not each of them goes down to the container.
    return max(found, key=lambda group: bool(group.container_id), default=None)


def _group(line: str) -> Group | None:
    path = line.split(":", 2)[-1]
    pods = list(_POD.finditer(path))
    if not pods:
        return None
    # A container may have groups of its own below: the one next to the pod's is the runtime's.
    container = _CONTAINER.search(path, pods[-1].end())
    return Group(pods[-1]["uid"].replace("_", "-"), container["id"] if container else "")


class Processes:
    """The groups of processes under a `/proc`; asked for all of a reading, then `forget` the others."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[int, tuple[str, Group | None]] = {}

    def warn_if_apart(self) -> None:
        """Say so if this process does not see the machine's process ids, which are the driver's."""
        try:
            namespace = (self._root / "self" / "ns" / "pid").readlink().name
        except OSError:
            return  # another machine's /proc, or a made-up one
        if namespace != _HOSTS_NAMESPACE:
            log.warning(
                "this exporter has process ids of its own, the driver names the machine's: pods may not be "
                "found. Set hostPID: true, or mount the machine's /proc and give --proc-root"
            )

    def group(self, pid: int) -> Group | str:
        """The process's group, or why there is none: it is GONE, UNREADABLE, REUSED or of NO_POD.

        REUSED tells that the id was another process's the last time, so that figures may be of both.
        """
        try:
            start = self._start(pid)
            before = self._known.get(pid)
            if before and before[0] == start and before[1]:
                return before[1]
            group = group_of((self._root / str(pid) / "cgroup").read_text("utf-8", "replace"))
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
            return GONE
        except OSError:
            return UNREADABLE
        self._known[pid] = start, group
        if before and before[0] != start:
            return REUSED
        return group or NO_POD

    def keep_only(self, pids: set[int]) -> None:
        """Forget every other process."""
        self._known = {pid: known for pid, known in self._known.items() if pid in pids}

    def _start(self, pid: int) -> str:
        """When the process started, in ticks since boot; "" where that is not told."""
        try:
            text = (self._root / str(pid) / "stat").read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""
        # The second field is the program's name, with any characters.
        fields = text.rpartition(")")[2].split()
        return fields[19] if len(fields) > 19 else ""
