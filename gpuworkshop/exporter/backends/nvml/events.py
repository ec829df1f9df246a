"""XID errors: what the driver reports when something goes wrong on a GPU.

NVML tells of each as it happens, and only to those who wait. A thread waits, and keeps for each GPU the
last XID, how often each was seen, and when: a gauge alone would show a fault of last week for ever.
"""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from gpuworkshop.exporter.backends.nvml.library import Nvml, NvmlError

log = logging.getLogger(__name__)

_XID = 0x8  # nvmlEventTypeXidCriticalError
_WHOLE_GPU = 0xFFFFFFFF
# How long one wait lasts, which bounds how long stopping takes.
_WAIT_MS = 500
_PAUSE_S = 1.0
_STOP_S = 3.0

NOT_WATCHED = "not_watched"


class XidLog:
    """The XIDs seen since the exporter started, by GPU; written by one thread, read by another."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, int]] = Counter()
        self._seen: dict[tuple[str, int], float] = {}
        # In the order of their happening, so a later one follows an earlier one.
        self._last: dict[tuple[str, int | None], tuple[int, int]] = {}
        self._order = 0

    def add(self, uuid: str, instance: int | None, xid: int) -> None:
        """An XID of a GPU, or of one of its MIG instances."""
        with self._lock:
            self._order += 1
            self._counts[uuid, xid] += 1
            self._seen[uuid, xid] = self._clock()
            self._last[uuid, instance] = (self._order, xid)

    def last(self, uuid: str, instance: int | None = None) -> int:
        """The last XID of the GPU, or of what concerns the instance; 0 if there was none."""
        with self._lock:
            found = [
                seen
                for (gpu, part), seen in self._last.items()
                if gpu == uuid and (instance is None or part in (None, instance))
            ]
        return max(found, default=(0, 0))[1]

    def totals(self) -> list[tuple[str, int, int, float]]:
        """UUID, XID, how often, and the Unix time of the last one."""
        with self._lock:
            return [(uuid, xid, count, self._seen[uuid, xid]) for (uuid, xid), count in self._counts.items()]


class XidWatch:
    """Waits for the XIDs of these GPUs (handle → UUID) until stopped, and writes them into the log."""

    def __init__(self, nvml: Nvml, seen: XidLog) -> None:
        self._nvml = nvml
        self._log = seen
        self._set: Any = None
        self._uuids: dict[int, str] = {}
        self._refused: dict[str, str] = {}
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, gpus: Mapping[str, Any]) -> None:
        """Watch the GPUs, given as UUID → handle; one that tells no events is left out, with a reason."""
        self._uuids, self._refused = {}, {}
        try:
            self._set = self._nvml.call("nvmlEventSetCreate")
        except NvmlError as error:
            self._refused = dict.fromkeys(gpus, error.cause)
            return
        for uuid, handle in gpus.items():
            try:
                self._nvml.call("nvmlDeviceRegisterEvents", handle, _XID, self._set)
            except NvmlError as error:
                self._refused[uuid] = error.cause
            else:
                self._uuids[address(handle)] = uuid
        if self._uuids:
            self._stopped = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(self._stopped,), name="xid-events", daemon=True
            )
            self._thread.start()

    def stop(self) -> bool:
        """End the waiting, and free what it holds; False if the driver does not let go."""
        self._stopped.set()
        if self._thread:
            self._thread.join(_STOP_S)
            if self._thread.is_alive():
                return False
            self._thread = None
        watched, self._set = self._set, None
        if watched is not None:
            try:
                self._nvml.call("nvmlEventSetFree", watched)
            except NvmlError as error:
                log.debug("%s", error)
        return True

    def refused(self, uuid: str) -> str:
        """Why the GPU's XIDs are not known; "" if they are."""
        return self._refused.get(uuid, "" if uuid in self._uuids.values() else NOT_WATCHED)

    def _run(self, stopped: threading.Event) -> None:
        while not stopped.is_set():
            try:
                event = self._nvml.ask("nvmlEventSetWait_v2", self._set, _WAIT_MS)
            except NvmlError as error:
                if error.cause != "timeout":
                    self._nvml.count(error)
                    # A lost GPU fails at once, again and again.
                    stopped.wait(_PAUSE_S)
                continue
            self._take(event)

    def _take(self, event: Any) -> None:
        uuid = self._uuids.get(address(event.device), "")
        if not event.eventType & _XID or not uuid:
            return
        instance = None if event.gpuInstanceId == _WHOLE_GPU else int(event.gpuInstanceId)
        log.warning("XID %d on %s", event.eventData, uuid)
        self._log.add(uuid, instance, int(event.eventData))


def address(handle: Any) -> int:
    """What tells one handle from another: they are pointers, and Python compares those by object."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
