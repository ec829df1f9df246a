"""A registry with kubelets in this process, for the tests of what they do."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from gpuworkshop.errors import LabError
from gpuworkshop.lab.api.kinds import EVENT, NAMESPACE, NODE, POD, Kind
from gpuworkshop.lab.api.objects import Object, condition, meta
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.runtime import LogOptions
from gpuworkshop.lab.api.store import Store
from gpuworkshop.lab.kubelet.host import BackOff
from gpuworkshop.lab.kubelet.manager import Kubelets
from gpuworkshop.processes.ports import Subnet, claim_subnet
from gpuworkshop.settings import Settings

NODE_NAME = "ip-192-168-1-2.eu-west-1.compute.internal"
LONGEST_S = 20.0


@dataclass(frozen=True)
class FakeMachine:
    """An instance type."""

    cpus: int = 4
    memory_gib: float = 16
    gpus: int = 0
    gpu_model: str = ""
    pods: int = 110


MACHINES = {"m5.xlarge": FakeMachine(), "g5.12xlarge": FakeMachine(48, 192, 4, "A10G", 234)}


def find_machine(name: str) -> FakeMachine:
    """As the table of instance types does."""
    if name not in MACHINES:
        raise LabError(f"there is no instance type {name}")
    return MACHINES[name]


class FakeTokens:
    """Issues tokens that say for whom they are."""

    def issue(
        self,
        account: Object,
        audiences: Sequence[str] | None = None,
        expiration_s: int | None = None,
        pod: Object | None = None,
    ) -> tuple[str, str]:
        assert pod is not None
        return f"token-of-{account['metadata']['name']}-for-{audiences}", "2030-01-01T00:00:00Z"


@dataclass
class KubeletLab:
    """One lab: its state folder, its database, and after `start` its kubelets."""

    state: Path
    subnet: Subnet = field(default_factory=cache(claim_subnet))
    database: str = ":memory:"
    back_off: BackOff = field(default_factory=lambda: BackOff(base=0.05, most=0.1))

    def __post_init__(self) -> None:
        self.registry = Registry(Store(self.database))
        for name in ("default", "kube-node-lease"):
            if self.registry.find(NAMESPACE, "", name) is None:
                self.registry.create(NAMESPACE, {"metadata": {"name": name}})

    def start(self) -> Kubelets:
        """New kubelets on the same registry, not running yet."""
        settings = Settings(root=Path.cwd(), state=self.state)
        self.kubelets = Kubelets(
            self.registry, settings, self.subnet, find_machine, FakeTokens(), back_off=self.back_off
        )
        return self.kubelets

    @asynccontextmanager
    async def running(self) -> AsyncIterator[KubeletLab]:
        """Kubelets that run, and end with everything they have started."""
        kubelets = self.start()
        task = asyncio.create_task(kubelets.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await kubelets.stop()

    def node(self, name: str = NODE_NAME, kind: str = "m5.xlarge", **labels: str) -> Object:
        """Create a node."""
        all_labels = {"gpuworkshop.io/simulated": "true", "node.kubernetes.io/instance-type": kind, **labels}
        return self.registry.create(NODE, {"metadata": {"name": name, "labels": all_labels}})

    def pod(
        self, name: str, *containers: Object, annotations: dict[str, str] | None = None, **spec: Any
    ) -> Object:
        """Create a pod that is bound to the node."""
        metadata = {"name": name, "namespace": "default", "annotations": annotations or {}}
        whole = {"nodeName": NODE_NAME, "containers": list(containers), **spec}
        return self.registry.create(POD, {"metadata": metadata, "spec": whole})

    def put(self, kind: Kind, name: str, **content: Any) -> Object:
        """Create a ConfigMap, Secret or the like."""
        return self.registry.create(kind, {"metadata": {"name": name, "namespace": "default"}, **content})

    def get(self, name: str) -> Object:
        """A pod."""
        return self.registry.get(POD, "default", name)

    def events(self, name: str) -> dict[str, str]:
        """The last message of each reason of the events about a pod."""
        return {
            event["reason"]: event["message"]
            for event in sorted(
                self.registry.list(EVENT), key=lambda found: int(meta(found)["resourceVersion"])
            )
            if event["involvedObject"]["name"] == name
        }

    async def until(self, is_so: Callable[[], Any], *kinds: Kind) -> None:
        """Wait for a change after which it is so; of pods and events, unless other kinds are named."""
        async with asyncio.timeout(LONGEST_S):
            with self.registry.changes(*kinds or (POD, EVENT)) as changes:
                while not is_so():
                    await anext(changes)

    async def phase(self, name: str, phase: str) -> Object:
        """Wait until a pod is in that phase."""
        await self.until(lambda: (self.get(name).get("status") or {}).get("phase") == phase)
        return self.get(name)

    async def ready(self, name: str) -> Object:
        """Wait until a pod is ready."""
        await self.until(lambda: is_true(self.get(name), "Ready"))
        return self.get(name)

    async def gone(self, name: str) -> None:
        """Wait until a pod's object is gone."""
        await self.until(lambda: self.registry.find(POD, "default", name) is None)

    async def log(self, name: str, container: str = "main", **options: Any) -> bytes:
        """A container's log."""
        pieces = self.kubelets.log(self.get(name), LogOptions(container, **options))
        return b"".join([piece async for piece in pieces])

    async def logged(self, name: str, wanted: bytes) -> None:
        """Follow the log of a pod that is or becomes ready until it is `wanted`."""
        await self.ready(name)
        seen = b""
        async with asyncio.timeout(LONGEST_S):
            async for piece in self.kubelets.log(self.get(name), LogOptions("main", follow=True)):
                seen += piece
                if seen == wanted:
                    return
        assert seen == wanted

    async def execute(self, name: str, *command: str, container: str = "main") -> tuple[int, bytes, bytes]:
        """Run a command in a container: its exit code, standard output and standard error."""
        begun = await self.kubelets.execute(self.get(name), container, command, stdin=False, tty=False)
        assert begun.stderr is not None
        async with asyncio.timeout(LONGEST_S):
            output, errors = await asyncio.gather(begun.stdout.read(), begun.stderr.read())
            return await begun.wait(), output, errors


def is_true(obj: Object, kind: str) -> bool:
    """Whether the object has that condition."""
    return (condition(obj, kind) or {}).get("status") == "True"


def state_of(pod: Object, container: int = 0) -> dict[str, Any]:
    """The state of one of a pod's containers."""
    found: dict[str, Any] = pod["status"]["containerStatuses"][container]["state"]
    return found


def statuses(pod: Object) -> Any:
    """A pod's container statuses."""
    return (pod.get("status") or {}).get("containerStatuses") or [{}]


def shell(script: str, **more: Any) -> Object:
    """A container that runs a shell script."""
    return {"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", script], **more}


def pause(**more: Any) -> Object:
    """A container that a pause stands in for."""
    return {"name": "main", "image": "nginx:1.27", **more}


def in_lab(test: Callable[[KubeletLab], Coroutine[Any, Any, None]], gpus: bool = False) -> None:
    """Run a test with running kubelets, and a node that is ready."""

    async def run(folder: str) -> None:
        async with KubeletLab(Path(folder) / "the state").running() as lab:
            lab.node(kind="g5.12xlarge" if gpus else "m5.xlarge")
            await lab.until(lambda: is_true(lab.registry.get(NODE, "", NODE_NAME), "Ready"), NODE)
            async with asyncio.timeout(60):
                await test(lab)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))
