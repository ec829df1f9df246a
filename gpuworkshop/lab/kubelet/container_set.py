"""A pod's containers in their order: init containers one after the other, then all others together."""

from __future__ import annotations

import asyncio

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.kubelet.containers import ContainerWorker
from gpuworkshop.lab.kubelet.host import Owner


class ContainerSet:
    """The containers of `pod`, whose worker is `owner`; each goes on from its last status."""

    def __init__(self, owner: Owner, pod: Object) -> None:
        self.inits = _workers(owner, pod, "initContainers", "initContainerStatuses")
        self.mains = _workers(owner, pod, "containers", "containerStatuses")
        self.initialized = False
        self._stopped = False

    @property
    def all(self) -> list[ContainerWorker]:
        """Init containers first."""
        return [*self.inits, *self.mains]

    async def run(self, policy: str, grace_s: float) -> str:
        """Run them by the pod's restart policy until they have ended; the phase that the pod has then.

        Sidecars, which are init containers that go on, have `grace_s` seconds when the others have ended.
        """
        async with asyncio.TaskGroup() as sidecars:
            phase = await self._run_in_order(policy, sidecars)
            for worker in self.inits:
                worker.stop(grace_s)
        return phase

    def stop(self, grace_s: float) -> None:
        """End them: SIGTERM now, SIGKILL after `grace_s` seconds."""
        self._stopped = True
        for worker in self.all:
            worker.stop(grace_s)

    async def _run_in_order(self, policy: str, sidecars: asyncio.TaskGroup) -> str:
        if not await self._initialize(policy, sidecars):
            return "Failed"
        self.initialized = True
        await asyncio.gather(*(worker.run(policy) for worker in self.mains))
        return "Failed" if any(worker.record.exit_code for worker in self.mains) else "Succeeded"

    async def _initialize(self, policy: str, sidecars: asyncio.TaskGroup) -> bool:
        """Run the init containers; False ends the pod."""
        for worker in self.inits:
            if worker.spec.get("restartPolicy") == "Always":
                sidecars.create_task(worker.run("Always"))
                await worker.begun.wait()
            else:
                await worker.run("Never" if policy == "Never" else "OnFailure")
            if self._stopped or worker.record.exit_code:
                return False
        return True


def _workers(owner: Owner, pod: Object, key: str, statuses: str) -> list[ContainerWorker]:
    known = {found["name"]: found for found in (pod.get("status") or {}).get(statuses) or []}
    return [ContainerWorker(owner, spec, known.get(spec["name"])) for spec in pod["spec"].get(key) or []]
