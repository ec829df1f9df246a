"""The kubelet of one node: its pods, its status, its GPUs and its pod-resources socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from gpuworkshop.lab.api.kinds import LEASE, NAMESPACE, NODE, POD, Kind
from gpuworkshop.lab.api.objects import Object, condition, labels_of, name_of, namespace_of, uid_of
from gpuworkshop.lab.kubelet import node_status, sharing
from gpuworkshop.lab.kubelet.devices import Devices
from gpuworkshop.lab.kubelet.host import Host, Lab
from gpuworkshop.lab.kubelet.node_status import Machine
from gpuworkshop.lab.kubelet.pod_resources import PodResourcesServer
from gpuworkshop.lab.kubelet.pods import OVER, PodWorker
from gpuworkshop.lab.kubelet.references import References
from gpuworkshop.lab.simulation import SimulatedNode


class Kubelet:
    """Runs the pods that are bound to `node`, an instance of the type `machine`."""

    def __init__(self, lab: Lab, node: Object, machine: Machine, version: str) -> None:
        self.uid = uid_of(node)
        self.name = name_of(node)
        self.pods: dict[str, PodWorker] = {}
        self._lab, self._machine, self._version = lab, machine, version
        self._host = Host(lab, self.name, self._claim(node), None, self._pod_written)
        if machine.gpus:
            simulated = SimulatedNode(self._host.gpu_file)
            self._host.devices = Devices(simulated, machine.gpu_model, machine.gpus)
        self._references = References()
        self._offered: tuple[int, int] | None = None
        self._resources = PodResourcesServer(self._running, self._host.devices)

    async def start(self, socket: Path) -> None:
        """Post the node's status, take over the pods that are bound to it, and serve on `socket`."""
        bound = [pod for pod in self._lab.registry.list(POD) if pod["spec"].get("nodeName") == self.name]
        if self._host.devices:
            self._host.devices.keep_only({uid_of(pod) for pod in bound})
        self._count_gpus()
        self.post_status()
        self.renew_lease()
        for pod in bound:
            self.take(pod)
        await self._resources.start(socket)

    async def stop(self, grace_s: float) -> None:
        """End every pod's processes; the pods themselves are as they were."""
        await asyncio.gather(*(worker.end(grace_s) for worker in self.pods.values()))
        await self._resources.stop()

    async def dissolve(self) -> None:
        """The node is gone: end its pods for good."""
        await asyncio.gather(*(worker.vanish() for worker in self.pods.values()))
        await self._resources.stop()
        self._lab.addresses.release_node(self.name)
        if self._host.devices:
            self._host.devices.remove()

    def source_changed(self, kind: Kind, source: Object) -> None:
        """A ConfigMap or Secret has changed: whoever waits for it, or holds it, goes by it."""
        for uid in self._references.users(kind, namespace_of(source), name_of(source)):
            worker = self.pods[uid]
            worker.source_changed(kind, name_of(source))
            if sharing.is_plugin(worker.pod):
                self.recount_gpus()

    def refresh(self) -> None:
        """Renew the tokens of the pods, as far as it is time for that."""
        for worker in self.pods.values():
            worker.refresh()

    def take(self, pod: Object) -> None:
        """A pod that is bound to this node is there, or has changed."""
        worker = self.pods.get(uid_of(pod))
        if worker is None:
            self._references.add(pod)
            self.pods[uid_of(pod)] = PodWorker(self._host, pod)
        else:
            worker.update(pod)

    async def lose(self, pod: Object) -> None:
        """A pod's object is gone."""
        if worker := self.pods.pop(uid_of(pod), None):
            self._references.discard(pod)
            await worker.vanish()
            if sharing.is_plugin(pod):
                self.recount_gpus()

    def post_status(self) -> None:
        """Write the node's status."""
        now = self._lab.time()
        self._lab.registry.modify(NODE, "", self.name, lambda node: self._describe(node, now), "status")

    def renew_lease(self) -> None:
        """Say that the node lives, which costs less than its status: its Lease, made if it is not there."""
        registry = self._lab.registry
        node = registry.find(NODE, "", self.name)
        if node is None or registry.find(NAMESPACE, "", "kube-node-lease") is None:
            return
        lease = node_status.lease_of(node, registry.now())

        def renew(live: Object) -> None:
            live["spec"] = lease["spec"]

        if registry.modify(LEASE, "kube-node-lease", self.name, renew) is None:
            registry.create(LEASE, lease)

    def recount_gpus(self) -> None:
        """The device plugin came, went, or was configured anew: offer what it offers."""
        before = self._offered
        self._count_gpus()
        if self._offered != before:
            self.post_status()

    def _describe(self, node: Object, now: str) -> None:
        if uid_of(node) == self.uid:
            node["status"] = node_status.status_of(
                node, self._machine, self._host.address, self._version, self._offered, now
            )

    def _count_gpus(self) -> None:
        devices = self._host.devices
        if devices is None:
            return
        node = self._lab.registry.find(NODE, "", self.name)
        plugin = next((pod for pod in self._bound() if sharing.is_plugin(pod) and _is_ready(pod)), None)
        if plugin is not None and node is not None:
            devices.replicas = sharing.replicas(self._lab.registry, plugin, node)
            self._offered = (len(devices.offered()), len(devices.offered()))
        elif self._offered is not None:
            self._offered = (self._offered[0], 0)  # as on a real node, whose devices are unhealthy then

    def _pod_written(self, pod: Object) -> None:
        if sharing.is_plugin(pod):
            self.recount_gpus()

    def _bound(self) -> list[Object]:
        registry = self._lab.registry
        return [pod for pod in registry.list(POD) if pod["spec"].get("nodeName") == self.name]

    def _running(self) -> Iterable[Object]:
        return [pod for pod in self._bound() if (pod.get("status") or {}).get("phase") not in OVER]

    def _claim(self, node: Object) -> str:
        addresses = (node.get("status") or {}).get("addresses") or []
        wanted = next((found["address"] for found in addresses if found["type"] == "InternalIP"), "")
        return self._lab.addresses.claim_node(self.name, wanted)


def _is_ready(pod: Object) -> bool:
    return (condition(pod, "Ready") or {}).get("status") == "True"


def instance_type(node: Object) -> str:
    """The instance type that the node's label names."""
    return labels_of(node).get("node.kubernetes.io/instance-type", "")
