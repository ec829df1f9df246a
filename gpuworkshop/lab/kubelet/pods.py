"""One pod of a node: its GPUs, volumes and containers, from its first appearance to its deletion."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from gpuworkshop.lab.api.kinds import POD, Kind
from gpuworkshop.lab.api.objects import (
    Object,
    annotations_of,
    is_deleted,
    meta,
    name_of,
    namespace_of,
    uid_of,
)
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.kubelet import allocation, loads
from gpuworkshop.lab.kubelet.container_set import ContainerSet
from gpuworkshop.lab.kubelet.containers import RETRY_S, ContainerWorker
from gpuworkshop.lab.kubelet.devices import NoDevice
from gpuworkshop.lab.kubelet.filesystem import PodFolder
from gpuworkshop.lab.kubelet.host import Host
from gpuworkshop.lab.kubelet.images import rule_for
from gpuworkshop.lab.kubelet.references import in_volumes
from gpuworkshop.lab.kubelet.reporting import Reporter
from gpuworkshop.lab.kubelet.resources import containers_of
from gpuworkshop.lab.kubelet.statuses import Summary, gates, phase_of
from gpuworkshop.lab.kubelet.volumes import Missing

log = logging.getLogger(__name__)
OVER = ("Succeeded", "Failed")


class PodWorker:
    """The pod's worker; `pod` is the object as it was last seen. Its tasks end by `end` or `vanish`."""

    def __init__(self, host: Host, pod: Object) -> None:
        self.host = host
        self.pod = pod
        self.uid = uid_of(pod)
        self.folder = PodFolder(host.lab.pods, pod)
        status = pod.get("status") or {}
        self._phase = str(status.get("phase") if status.get("phase") in OVER else "")
        self._failure = (str(status.get("reason") or ""), str(status.get("message") or ""))
        self._start = str(status.get("startTime") or host.lab.time())
        self.address = ""
        self._containers = ContainerSet(self, pod)
        self._reporter = Reporter(host, pod, self._summary)
        self._wake = asyncio.Event()
        self._grace_s: float | None = None
        self._given_back = False
        self._ending: asyncio.Task[None] | None = None
        self._living = self._task(self._live(str(status.get("podIP") or "")))
        self._reporting = self._task(self._reporter.run())
        if is_deleted(pod):
            self.update(pod)

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        task.add_done_callback(self._check)
        return task

    def _check(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            log.error("the worker of pod %s has failed", name_of(self.pod), exc_info=error)

    @property
    def containers(self) -> list[ContainerWorker]:
        """All containers, init containers first."""
        return self._containers.all

    def changed(self) -> None:
        """Something is to be written to the pod's status."""
        if self._ending is None:
            self._reporter.changed()

    async def woken(self, within_s: float | None = None) -> None:
        """Until something changes that the pod refers to, the pod is to end, or the time is over."""
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._wake.wait()

    def update(self, pod: Object) -> None:
        """The object has changed: its deletion may have begun, or its load be another one."""
        before, self.pod = self.pod, pod
        load_changed = annotations_of(pod).get(loads.ANNOTATION) != annotations_of(before).get(
            loads.ANNOTATION
        )
        if gates(pod) != gates(before):
            self.changed()
        if is_deleted(pod):
            self._shorten(float(meta(pod).get("deletionGracePeriodSeconds") or 0))
        elif load_changed and not self._phase:
            self._assign_gpus()

    def _shorten(self, grace_s: float) -> None:
        """Begin to end, or have less time for it than before."""
        if self._grace_s is None or grace_s < self._grace_s:
            self._grace_s = grace_s
            self._stop(grace_s)
        if self._ending is None:
            self._ending = self._task(self._finish())

    def refresh(self) -> None:
        """Bring the files of the volumes up to date, tokens among them."""
        if self.folder.path.exists() and not self._phase:
            with suppress(Missing, OSError):
                self._write_volumes()

    def source_changed(self, kind: Kind, name: str) -> None:
        """A ConfigMap or Secret of the pod's has changed: what waits for it, or holds it, goes by it."""
        self._wake.set()
        if (kind, name) not in in_volumes(self.pod):
            return
        self.refresh()
        for container in self._containers.mains:
            if container.setting and container.setting.launch and container.setting.launch.reloads:
                self._task(self._reload(container))

    async def _reload(self, container: ContainerWorker) -> None:
        rule, setting = rule_for(container.spec["image"]), container.setting
        if rule and setting and not self._ending:
            await rule(setting.situation)
            container.reload()

    async def end(self, grace_s: float) -> None:
        """End the containers, as the lab ends; the pod itself goes on at the next start."""
        self._stop(grace_s)
        await asyncio.gather(self._living, return_exceptions=True)
        self._reporting.cancel()

    async def vanish(self) -> None:
        """The object is gone: end what still runs, and leave nothing on the disk."""
        self._stop(0)
        await asyncio.gather(self._living, return_exceptions=True)
        self._reporting.cancel()
        self._give_back()
        self.host.lab.tokens.forget(self.uid)
        await asyncio.to_thread(self.folder.remove)

    def _stop(self, grace_s: float) -> None:
        self._containers.stop(grace_s)
        self._wake.set()

    async def _live(self, last_address: str) -> None:
        if self._phase:
            return
        lab, spec = self.host.lab, self.pod["spec"]
        if spec.get("hostNetwork"):
            self.address = self.host.address
        else:
            self.address = lab.addresses.claim_pod(self.host.name, last_address)
        if not self._assign_gpus():
            return
        await self._mount()
        grace_s = float(spec.get("terminationGracePeriodSeconds", 30))
        self._over(await self._containers.run(spec.get("restartPolicy", "Always"), grace_s))

    @property
    def _stopped(self) -> bool:
        return self._ending is not None or self.host.lab.closing

    def _over(self, phase: str) -> None:
        if self._stopped and not self._ending:
            return
        self._phase = phase
        self._give_back()
        self.changed()

    def _give_back(self) -> None:
        if self._given_back:  # by now they may be another pod's
            return
        self._given_back = True
        if self.host.devices:
            self.host.devices.free(self.uid)
        self.host.lab.addresses.release_pod(self.address)

    def _assign_gpus(self) -> bool:
        try:
            allocation.assign(self.host, self.pod)
        except NoDevice as error:
            self._failure = ("UnexpectedAdmissionError", f"Pod was rejected: {error}")
            self.host.event(self.pod, "Warning", "UnexpectedAdmissionError", str(error))
            self._over("Failed")
            return False
        return True

    async def _mount(self) -> None:
        """Make the volumes, and wait for what is missing."""
        while not self._stopped:
            try:
                self._write_volumes()
            except (Missing, OSError) as error:
                self.host.event(self.pod, "Warning", "FailedMount", str(error))
                self.changed()
                await self.woken(RETRY_S)
            else:
                return

    def make_folder(self) -> None:
        """Make the folder of a pod that has had no need of one."""
        self.folder.make()
        self._write_volumes()

    def _write_volumes(self) -> None:
        """Check that the volumes' sources are there, and write them if anything runs or has run here."""
        runs = any(rule_for(spec["image"]) for spec in containers_of(self.pod))
        self.folder.write_volumes(self.pod, self.host.lab.sources, runs or self.folder.path.exists())

    async def _finish(self) -> None:
        """Delete the object, once its containers have ended."""
        await asyncio.gather(self._living, return_exceptions=True)
        self._give_back()
        if meta(self.pod).get("finalizers"):
            self._phase = self._phase or "Failed"
            with suppress(ApiError):
                self._reporter.write()
        with suppress(ApiError):
            self.host.lab.registry.delete(
                POD, namespace_of(self.pod), name_of(self.pod), grace_period=0, uid=self.uid
            )

    def _summary(self) -> Summary:
        containers = [worker.record.status() for worker in self._containers.mains]
        return Summary(
            phase=self._phase or phase_of(containers, self._containers.initialized),
            reason=self._failure[0],
            message=self._failure[1],
            address=self.address,
            host=self.host.address,
            start=self._start,
            init_containers=[worker.record.status() for worker in self._containers.inits],
            containers=containers,
            initialized=self._containers.initialized,
            now=self.host.lab.time(),
        )
