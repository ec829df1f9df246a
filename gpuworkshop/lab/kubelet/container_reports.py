"""What is said of a container: by its record, which the pod's status shows, and by Events about the pod."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import name_of, namespace_of, uid_of
from gpuworkshop.lab.kubelet.host import Owner
from gpuworkshop.lab.kubelet.records import Record


class ContainerReports:
    """Keeps `record`, and tells the pod's worker whenever it has changed."""

    def __init__(self, owner: Owner, name: str, image: str, record: Record) -> None:
        self._owner, self._name, self._image, self._record = owner, name, image, record

    def event(self, kind: str, reason: str, message: str) -> None:
        """Record an Event about the pod."""
        self._owner.host.event(self._owner.pod, kind, reason, message)

    def begin(self, about: str) -> None:
        """It was started; `about` says how the lab runs its image."""
        self._record.begin(self._owner.host.lab.time())
        if not self._record.restarts:
            self.event("Normal", "Simulated", f'Image "{self._image}" {about}')
        self.event("Normal", "Pulled", f'Container image "{self._image}" already present on machine')
        self.event("Normal", "Created", f"Created container: {self._name}")
        self.event("Normal", "Started", f"Started container {self._name}")
        self._owner.changed()

    def probed(self, started: bool | None, ready: bool | None) -> None:
        """Whether it has started up and is ready; None: as before."""
        record = self._record
        before = record.started, record.ready
        record.started = record.started if started is None else started
        record.ready = record.ready if ready is None else ready
        if (record.started, record.ready) != before:
            self._owner.changed()

    def cannot_start(self, reason: str, message: str, event: str) -> None:
        """It waits for what it lacks."""
        self._wait(reason, message)
        self.event("Warning", "Failed", event)

    def back_off(self, delay_s: float) -> None:
        """It has ended too often, and waits to be started again."""
        pod = self._owner.pod
        name, about = self._name, f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
        message = f"back-off {delay_s:g}s restarting failed container={name} pod={about}"
        self._wait("CrashLoopBackOff", message)
        self.event("Warning", "BackOff", f"Back-off restarting failed container {name} in pod {about}")

    def _wait(self, reason: str, message: str) -> None:
        self._record.wait(reason, message)
        self._owner.changed()

    def end(self, code: int, reason: str, message: str = "") -> int:
        """It has ended; the exit code once more."""
        self._record.end(code, reason, message, self._owner.host.lab.time())
        self._owner.changed()
        return code
