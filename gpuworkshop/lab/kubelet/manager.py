"""All kubelets of the lab: one for each Node that says it is simulated, and the door to their pods.

`run` follows nodes, pods, ConfigMaps and Secrets, and hands each change to the kubelet that it concerns;
`stop` ends every process. Together they are what the API server asks for logs, commands and connections.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from typing import Any

from gpuworkshop.errors import WorkshopError
from gpuworkshop.lab.api.kinds import CONFIG_MAP, NODE, POD, SECRET
from gpuworkshop.lab.api.listening import ObjectChange
from gpuworkshop.lab.api.objects import Object, labels_of, name_of, namespace_of, uid_of
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.runtime import Execution, LogOptions
from gpuworkshop.lab.kubelet import access, places
from gpuworkshop.lab.kubelet.addresses import Addresses
from gpuworkshop.lab.kubelet.host import COMPONENT, BackOff, Lab
from gpuworkshop.lab.kubelet.kubelet import Kubelet, instance_type
from gpuworkshop.lab.kubelet.node_status import Machine
from gpuworkshop.lab.kubelet.pods import PodWorker
from gpuworkshop.lab.kubelet.spawn import Spawner
from gpuworkshop.lab.kubelet.tokens import TokenCache, TokenIssuer
from gpuworkshop.lab.kubelet.volumes import Sources
from gpuworkshop.processes.ports import Subnet
from gpuworkshop.settings import Settings

log = logging.getLogger(__name__)
SIMULATED = "gpuworkshop.io/simulated"
STATUS_S = 300.0  # a real kubelet's rhythms: its node's status, and its Lease
LEASE_RENEWAL_S = 10.0
TOKEN_RENEWAL_S = 60.0  # the shortest token, of ten minutes, has two more when it is due
END_GRACE_S = 3.0


class Kubelets:
    """The kubelets of the cluster in `registry`; a `Runtime` for its API server.

    `machine` finds an instance type by its name, `version` is what the nodes report.
    """

    def __init__(
        self,
        registry: Registry,
        settings: Settings,
        subnet: Subnet,
        machine: Callable[[str], Machine],
        tokens: TokenIssuer,
        version: str = "v1.33.5",
        back_off: BackOff | None = None,
    ) -> None:
        self._machine, self._version = machine, version
        self._kubelets: dict[str, Kubelet] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._folder = places.short_folder(settings.state / "lab")
        kept = TokenCache(registry, tokens)
        self._lab = Lab(
            registry,
            settings,
            Addresses(subnet),
            Sources(registry, kept),
            kept,
            Spawner(settings.state),
            self._folder / "pods",
            back_off or BackOff(),
        )

    async def run(self) -> None:
        """Run the kubelets, until cancelled; `stop` then ends what they run."""
        await self._lab.spawner.begin()
        self._sweep()
        beats = [
            asyncio.create_task(self._every(STATUS_S, Kubelet.post_status)),
            asyncio.create_task(self._every(LEASE_RENEWAL_S, Kubelet.renew_lease)),
            asyncio.create_task(self._every(TOKEN_RENEWAL_S, Kubelet.refresh)),
        ]
        try:
            with self._lab.registry.changes(NODE, POD, CONFIG_MAP, SECRET) as changes:
                async for change in changes:
                    try:
                        await self._handle(change)
                    except Exception:  # one odd object must not end the others' pods
                        log.exception("the kubelets cannot follow %s", name_of(change.object))
        finally:
            for beat in beats:
                beat.cancel()

    async def stop(self) -> None:
        """End every process that a pod runs. The pods go on at the next start."""
        self._lab.closing = True
        await asyncio.gather(*(kubelet.stop(END_GRACE_S) for kubelet in self._kubelets.values()))
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._lab.spawner.finish()
        places.remove(self._folder)

    async def log(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        """The container's log in pieces; with `follow` until the container ends."""
        async for piece in access.log(self._worker(pod), options):
            yield piece

    async def execute(
        self, pod: Object, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> Execution:
        """Run a command in a container that runs."""
        return await access.execute(self._worker(pod), container, command, stdin=stdin, tty=tty)

    async def attach(self, pod: Object, container: str, *, stdin: bool, tty: bool) -> Execution:
        """The streams of the container's own process, from now on."""
        return access.attach(self._worker(pod), container, stdin=stdin, tty=tty)

    async def connect(self, pod: Object, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a port of the pod; raises OSError when nothing listens there."""
        return await asyncio.open_connection(self._worker(pod).address, port)

    def socket(self, node: str) -> str:
        """The path of the node's pod-resources socket."""
        return str(places.socket_of(self._folder, node))

    def _sweep(self) -> None:
        """Remove the folders of pods that were deleted when nobody could."""
        known = {uid_of(pod) for pod in self._lab.registry.list(POD)}
        for folder in self._lab.pods.iterdir():
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)

    async def _handle(self, change: ObjectChange) -> None:
        obj = change.object
        if change.kind is NODE:
            await self._handle_node(change.type, obj)
        elif change.kind is POD:
            self._handle_pod(change.type, obj)
        else:
            for kubelet in self._kubelets.values():
                kubelet.source_changed(change.kind, obj)

    async def _handle_node(self, change: str, node: Object) -> None:
        kubelet = self._kubelets.get(name_of(node))
        if kubelet is not None and (change == "DELETED" or kubelet.uid != uid_of(node)):
            del self._kubelets[kubelet.name]
            await kubelet.dissolve()
            kubelet = None
        if change == "DELETED" or kubelet or labels_of(node).get(SIMULATED) != "true":
            return
        if self._lab.registry.find(NODE, "", name_of(node)) is None:
            return
        try:
            machine = self._machine(instance_type(node))
        except WorkshopError as error:
            self._lab.registry.event(
                node, "Warning", "UnknownInstanceType", error.seen, COMPONENT, name_of(node)
            )
            return
        kubelet = Kubelet(self._lab, node, machine, self._version)
        self._kubelets[kubelet.name] = kubelet
        await kubelet.start(places.socket_of(self._folder, kubelet.name))

    def _handle_pod(self, change: str, pod: Object) -> None:
        kubelet = self._kubelets.get(pod["spec"].get("nodeName") or "")
        if kubelet is None:
            return
        if change == "DELETED":
            self._task(kubelet.lose(pod))
        elif (live := self._lab.registry.find(POD, namespace_of(pod), name_of(pod))) is not None:
            kubelet.take(live)

    async def _every(self, period_s: float, act: Callable[[Kubelet], None]) -> None:
        while True:
            await asyncio.sleep(period_s)
            for kubelet in self._kubelets.values():
                try:
                    act(kubelet)
                except ApiError as error:  # such as a full disk
                    log.warning("node %s cannot report: %s", kubelet.name, error.message)

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _worker(self, pod: Object) -> PodWorker:
        kubelet = self._kubelets.get(pod["spec"].get("nodeName") or "")
        worker = kubelet.pods.get(uid_of(pod)) if kubelet else None
        if worker is None:
            raise ApiError(400, "BadRequest", f"pod {name_of(pod)} does not have a host assigned")
        return worker
