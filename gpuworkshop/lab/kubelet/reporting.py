"""Writes a pod's status whenever it has changed; changes that come together are one write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.api.objects import Object, name_of, namespace_of, uid_of
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.kubelet.host import Host
from gpuworkshop.lab.kubelet.statuses import Summary, status_of

log = logging.getLogger(__name__)
RETRY_S = 5.0


class Reporter:
    """Reports on `pod` what `summary` says of it, as long as `run` runs."""

    def __init__(self, host: Host, pod: Object, summary: Callable[[], Summary]) -> None:
        self._host, self._summary = host, summary
        self._namespace, self._name, self._uid = namespace_of(pod), name_of(pod), uid_of(pod)
        self._dirty = asyncio.Event()

    def changed(self) -> None:
        """Something is to be written."""
        self._dirty.set()

    async def run(self) -> None:
        """Write until cancelled, or until the lab ends: then the status stays for the next start."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            if self._host.lab.closing:
                return
            try:
                self.write()
            except ApiError as error:  # such as a full disk
                log.warning("the status of pod %s: %s", self._name, error.message)
                asyncio.get_running_loop().call_later(RETRY_S, self._dirty.set)

    def write(self) -> None:
        """Write it now. Raises ApiError."""
        registry = self._host.lab.registry
        written = registry.modify(POD, self._namespace, self._name, self._change, "status")
        if written is not None and uid_of(written) == self._uid:
            self._host.pod_written(written)

    def _change(self, pod: Object) -> None:
        if uid_of(pod) == self._uid:  # else it is a successor of the same name
            pod["status"] = status_of(pod, self._summary())
