"""The pod-resources API of one node, on a unix socket: which container holds which GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import grpc

from gpuworkshop.lab.api.objects import Object, name_of, namespace_of, uid_of
from gpuworkshop.lab.kubelet.devices import Devices
from gpuworkshop.lab.kubelet.resources import GPU
from gpuworkshop.podresources import messages, server


class PodResourcesServer:
    """Serves what `pods` (those of the node that are not over) hold of `devices`."""

    def __init__(self, pods: Callable[[], Iterable[Object]], devices: Devices | None) -> None:
        self._pods = pods
        self._devices = devices
        self._server: grpc.aio.Server | None = None

    async def start(self, socket: Path) -> None:
        """Serve on the unix socket, whose folder only its owner can enter."""
        socket.unlink(missing_ok=True)
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers((server.handler(self),))
        self._server.add_insecure_port(f"unix:{socket}")
        await self._server.start()

    async def stop(self) -> None:
        """Serve no longer."""
        if self._server is not None:
            await self._server.stop(grace=None)

    async def list(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        """Every pod of the node with what its containers hold."""
        return messages.ListPodResourcesResponse(pod_resources=[self._pod(pod) for pod in self._pods()])

    async def allocatable(self, request: Any, context: Any) -> Any:  # noqa: ARG002
        """Every device of the node."""
        offered = self._devices.offered() if self._devices else []
        return messages.AllocatableResourcesResponse(devices=_devices(offered))

    async def get(self, request: Any, context: Any) -> Any:
        """One pod; NOT_FOUND if the node does not run it."""
        for pod in self._pods():
            if (namespace_of(pod), name_of(pod)) == (request.pod_namespace, request.pod_name):
                return messages.GetPodResourcesResponse(pod_resources=self._pod(pod))
        why = f"pod {request.pod_name} in namespace {request.pod_namespace} not found"
        return await context.abort(grpc.StatusCode.NOT_FOUND, why)

    def _pod(self, pod: Object) -> Any:
        containers = [
            messages.ContainerResources(
                name=container["name"], devices=_devices(self._held(pod, container["name"]))
            )
            for container in pod["spec"]["containers"]
        ]
        return messages.PodResources(name=name_of(pod), namespace=namespace_of(pod), containers=containers)

    def _held(self, pod: Object, container: str) -> Sequence[str]:
        return self._devices.held_by(uid_of(pod), container) if self._devices else ()


def _devices(ids: Sequence[str]) -> list[Any]:
    return [messages.ContainerDevices(resource_name=GPU, device_ids=[each]) for each in ids]
