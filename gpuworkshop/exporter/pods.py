"""Which pods hold a GPU, asked of the node's kubelet: its pod-resources API on a unix socket.

A thread of its own asks once a second, so that a slow or hung kubelet delays neither sampling nor scrapes.
The last good answer counts for a minute. What it takes to ask is imported only when this is used, to keep the
exporter small.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuworkshop.errors import ExporterError
from gpuworkshop.exporter.devices import Device, Family, Pod
from gpuworkshop.exporter.holders import Holders, Rules

if TYPE_CHECKING:
    from gpuworkshop.podresources.channel import Channel

log = logging.getLogger(__name__)

INTERVAL_S = 1.0
# A kubelet under load takes a second or two; one that takes longer is asked anew.
DEADLINE_S = 3.0
KEPT_S = 60.0
_FIRST_WAIT_S = 2.0
_MISSING, _UNEXPECTED = "socket_missing", "unexpected"
# Shown with 0 from the start, so that the first one is seen as an increase. Others are gRPC's status codes.
_CAUSES = (_MISSING, "unavailable", "deadline_exceeded")


class PodResources:
    """A `devices.PodMapping` by the kubelet that serves on `socket`; a context manager, asking while entered.

    `clock` tells monotonic seconds.
    """

    def __init__(
        self, socket: Path, rules: Rules | None = None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._socket = socket
        self._rules = rules or Rules()
        self._clock = clock
        self._errors = dict.fromkeys(_CAUSES, 0)
        self._fault = ""
        self._last: tuple[float, Holders] | None = None
        self._channel: Channel | None = None
        self._asked, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="pod-resources", daemon=True)

    def __enter__(self) -> PodResources:
        _need_packages()
        self._thread.start()
        # So that the first snapshot has pods already, if the kubelet answers as fast as one does.
        self._asked.wait(_FIRST_WAIT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        if channel := self._channel:
            channel.close()  # which ends a call that hangs
        self._thread.join(timeout=2)

    def pods(self, device: Device) -> Sequence[Pod]:
        """Who holds the device, by the last good answer; nobody if that is too old."""
        last = self._last
        return last[1].of(device) if last and self._clock() - last[0] <= KEPT_S else ()

    def families(self) -> list[Family]:
        """How the asking goes."""
        last, errors = self._last, dict(self._errors)
        up = float(last is not None and not self._fault)
        found = [
            Family("gpuworkshop_pod_mapping_up", "gauge", "1 if the kubelet's last answer was good.",
                   [((), up)]),
            Family("gpuworkshop_pod_mapping_errors_total", "counter", "Calls of the kubelet that failed.",
                   [([("cause", cause)], float(count)) for cause, count in errors.items()]),
        ]  # fmt: skip
        if last:
            age, unsure = self._clock() - last[0], float(last[1].unsure)
            found += [
                Family("gpuworkshop_pod_mapping_age_seconds", "gauge",
                       f"Age of the last good answer, which counts for {KEPT_S:g} s.", [((), age)]),
                Family("gpuworkshop_pod_mapping_unknown_mig_devices", "gauge",
                       "MIG devices that pods hold and the driver does not know.", [((), unsure)]),
            ]  # fmt: skip
        return found

    def ask(self) -> None:
        """Ask the kubelet once; a failure is counted, and logged if it is another one than before."""
        asked = self._clock()
        try:
            self._last = asked, Holders(self._answer(), self._rules)
        except Exception as error:  # noqa: BLE001 - whatever it is, the mapping has to go on
            if not self._stopped.is_set():
                self._failed(error)
        else:
            if self._fault:
                log.info("the kubelet answers again at %s", self._socket)
            self._fault = ""

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.ask()
            self._asked.set()
            self._stopped.wait(INTERVAL_S)
        self._drop()

    def _answer(self) -> Any:
        from gpuworkshop.podresources.channel import Channel
        from gpuworkshop.podresources.messages import ListPodResourcesRequest

        if self._channel is None:
            self._channel = Channel(self._socket)
        return self._channel.call("List", ListPodResourcesRequest(), DEADLINE_S)

    def _drop(self) -> None:
        channel, self._channel = self._channel, None
        if channel:
            channel.close()

    def _failed(self, error: Exception) -> None:
        cause, seen = _cause(error, self._socket)
        self._errors[cause] = self._errors.get(cause, 0) + 1
        if cause != self._fault:
            log.warning("the kubelet does not say which pods hold the GPUs: %s (%s)", seen, cause)
        self._fault = cause


def _need_packages() -> None:
    try:
        from gpuworkshop.podresources import channel  # noqa: F401
    except ImportError as error:
        raise ExporterError(
            f"the kubelet cannot be asked without the package {error.name}",
            step="starting the exporter",
            todo="pip install h2 protobuf, or leave out --pod-resources-socket",
        ) from error


def _cause(error: Exception, socket: Path) -> tuple[str, str]:
    """A failure's name among the errors, and what was seen."""
    from gpuworkshop.podresources.channel import CallError

    if not isinstance(error, CallError):
        return _UNEXPECTED, f"{type(error).__name__}: {error}"
    if not socket.exists():
        return _MISSING, f"there is no {socket}"
    return error.code, error.details
