"""A made-up kubelet: the pod-resources API on a unix socket, with any answer and any fault."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from gpuworkshop.podresources import messages
from gpuworkshop.podresources.server import handler

GPU_RESOURCE = "nvidia.com/gpu"


def holding(*device_ids: str, resource: str = GPU_RESOURCE, pod: str = "gpu-pod", **names: str) -> Any:
    """A pod whose one container holds these devices."""
    devices = messages.ContainerDevices(resource_name=resource, device_ids=device_ids)
    container = messages.ContainerResources(name=names.get("container", "default"), devices=[devices])
    return messages.PodResources(
        name=pod, namespace=names.get("namespace", "default"), containers=[container]
    )


def answer(*pods: Any) -> Any:
    """What the kubelet answers."""
    return messages.ListPodResourcesResponse(pod_resources=pods)


class FakeKubelet:
    """Answers List with `pods`; while `hung` it takes the call and says nothing; with `status` it refuses."""

    def __init__(self, pods: Sequence[Any] = ()) -> None:
        self.pods = pods
        self.status: grpc.StatusCode | None = None
        self.hung = False
        self.peers: list[str] = []
        self._freed = threading.Event()

    def list(self, request: Any, context: Any) -> Any:
        self.peers.append(context.peer())
        if self.hung:
            self._freed.wait(30)
        if self.status:
            context.abort(self.status, "said no")
        return answer(*self.pods)

    allocatable = get = list

    @contextmanager
    def serving(self, socket: Path) -> Iterator[None]:
        """Serve on the socket, which is there as long as the kubelet is."""
        server = grpc.server(ThreadPoolExecutor(4))
        lister: Any = self
        server.add_generic_rpc_handlers((handler(lister),))
        server.add_insecure_port(f"unix:{socket}")
        server.start()
        try:
            yield
        finally:
            self._freed.set()
            server.stop(None).wait(10)
            socket.unlink(missing_ok=True)
