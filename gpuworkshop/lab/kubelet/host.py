"""What the workers of one node share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gpuworkshop.lab.api.kinds import ENDPOINTS
from gpuworkshop.lab.api.objects import Object, timestamp
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.kubelet import places
from gpuworkshop.lab.kubelet.addresses import Addresses
from gpuworkshop.lab.kubelet.devices import Devices
from gpuworkshop.lab.kubelet.filesystem import PodFolder
from gpuworkshop.lab.kubelet.spawn import Spawner
from gpuworkshop.lab.kubelet.tokens import TokenCache
from gpuworkshop.lab.kubelet.volumes import Sources
from gpuworkshop.settings import Settings

COMPONENT = "kubelet"


@dataclass(frozen=True)
class BackOff:
    """Seconds before a container is started again: none at first, then `base`, doubled up to `most`."""

    base: float = 10.0
    most: float = 300.0
    forgiven_after: float = 600.0

    def delay(self, failures: int) -> float:
        """Before the start that follows the `failures`-th end in a row."""
        return 0.0 if failures < 2 else float(min(self.base * 2.0 ** min(failures - 2, 32), self.most))


@dataclass
class Lab:
    """What the kubelets of all nodes share. `pods` is the folder of the pods' folders.

    When `closing`, the processes end but their pods are not over: they go on at the next start.
    """

    registry: Registry
    settings: Settings
    addresses: Addresses
    sources: Sources
    tokens: TokenCache
    spawner: Spawner
    pods: Path
    back_off: BackOff
    closing: bool = False

    @property
    def api(self) -> tuple[str, int]:
        """Where the API server listens."""
        endpoints = self.registry.find(ENDPOINTS, "default", "kubernetes") or {}
        for subset in endpoints.get("subsets") or []:
            return subset["addresses"][0]["ip"], int(subset["ports"][0]["port"])
        return "127.0.0.1", 443

    def time(self) -> str:
        """Now, as the API writes it."""
        return timestamp(self.registry.now())


@dataclass
class Host:
    """One node: its name and address, its GPUs, and whom to tell when a pod's status was written."""

    lab: Lab
    name: str
    address: str
    devices: Devices | None
    pod_written: Callable[[Object], None]

    @property
    def gpu_file(self) -> Path:
        """What the node's exporter replays."""
        return self.lab.settings.state / "lab" / "nodes" / f"{self.name}.yaml"

    @property
    def pod_resources(self) -> Path:
        """The node's pod-resources socket."""
        return places.socket_of(self.lab.pods.parent, self.name)

    def event(self, about: Object, kind: str, reason: str, message: str) -> None:
        """Record an Event of this kubelet's."""
        with suppress(ApiError):  # a full disk must not end what runs
            self.lab.registry.event(about, kind, reason, message, COMPONENT, self.name)


class Owner(Protocol):
    """The pod of a container, as the container sees it."""

    pod: Object
    host: Host
    folder: PodFolder
    address: str

    def changed(self) -> None:
        """The container's status is another one."""

    async def woken(self, within_s: float | None = None) -> None:
        """Until something changes that a waiting container waits for, or the time is over."""
