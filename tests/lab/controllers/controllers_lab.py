"""A cluster of controllers without a kubelet's processes: a stand-in marks pods running, ready and gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gpuworkshop.lab.api.kinds import EVENT, NAMESPACE, NODE, POD, SERVICE_ACCOUNT, Kind
from gpuworkshop.lab.api.objects import Object, is_deleted, name_of, namespace_of, timestamp
from gpuworkshop.lab.api.registry import Admission, Registry
from gpuworkshop.lab.api.store import Store
from gpuworkshop.lab.controllers.conditions import with_condition, write_status
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, own_key, run_controllers
from gpuworkshop.lab.controllers.pods import is_finished

START = 1_700_000_000.0


class Clock:
    """Unix seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


class KubeletStandIn(Controller):
    """Runs every bound pod at once; those with the label `broken` never become ready."""

    name = "kubelet"
    watches: Mapping[Kind, Keys] = {POD: own_key}

    def __init__(self) -> None:
        self._given = 0

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        pod = registry.find(POD, *key)
        if pod is None or not pod["spec"].get("nodeName"):
            return None
        if is_deleted(pod):
            registry.delete(POD, *key, grace_period=0)
        elif (pod.get("status") or {}).get("phase") == "Pending":
            self._given += 1
            broken = "broken" in (pod["metadata"].get("labels") or {})
            run(
                registry, pod, ready=not broken, address=f"127.1.{self._given // 250}.{self._given % 250 + 1}"
            )
        return None


def new_registry(admission: Sequence[Admission] = (), clock: Callable[[], float] | None = None) -> Registry:
    """A registry with the namespace `default`."""
    registry = Registry(Store(":memory:"), admission=admission, clock=clock or Clock())
    registry.create(NAMESPACE, {"metadata": {"name": "default"}})
    registry.create(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": "default"}})
    return registry


def run(registry: Registry, pod: Object, *, ready: bool = True, address: str = "127.1.0.2") -> None:
    """Have a pod run, as its kubelet would say."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    status = "True" if ready else "False"
    conditions = with_condition(conditions, "Ready", status, "", "", registry.now())
    write_status(registry, POD, pod, {"phase": "Running", "podIP": address, "conditions": conditions})


def finish(registry: Registry, name: str, phase: str, namespace: str = "default") -> None:
    """Have a pod's containers end: Succeeded or Failed."""
    pod = registry.get(POD, namespace, name)
    exit_code = 0 if phase == "Succeeded" else 1
    ended = {"exitCode": exit_code, "finishedAt": timestamp(registry.now())}
    container = {"name": "main", "ready": False, "state": {"terminated": ended}}
    write_status(registry, POD, pod, {"phase": phase, "containerStatuses": [container]})


def add_node(
    registry: Registry,
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    ready: bool = True,
    **allocatable: str,
) -> Object:
    """A node; resources such as `cpu="8"`, `gpu="4"` over those of a common one."""
    has = {"cpu": "4", "memory": "16Gi", "pods": "1000", "ephemeral-storage": "100Gi"}
    has |= {"nvidia.com/gpu" if key == "gpu" else key: value for key, value in allocatable.items()}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    spec = {"taints": [dict(taint) for taint in taints]} if taints else {}
    status = {"allocatable": has, "capacity": has, "conditions": conditions}
    return registry.create(NODE, {"metadata": metadata, "spec": spec, "status": status})


def container(**resources: str) -> dict[str, Any]:
    """A container with those requests and limits; `gpu` is `nvidia.com/gpu`."""
    named = {"nvidia.com/gpu" if key == "gpu" else key: value for key, value in resources.items()}
    body: dict[str, Any] = {"name": "main", "image": "registry.k8s.io/pause:3.9"}
    return body | ({"resources": {"requests": named, "limits": named}} if named else {})


def template(labels: Mapping[str, str], image: str = "registry.k8s.io/pause:3.9", **spec: Any) -> Object:
    """A pod template."""
    body = {"containers": [{"name": "main", "image": image}], **spec}
    return {"metadata": {"labels": dict(labels)}, "spec": body}


def pod(name: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Object:
    """A pod of one container."""
    metadata = {"name": name, "namespace": "default", "labels": dict(labels or {})}
    return {"metadata": metadata, "spec": {"containers": [container()], **spec}}


def workload(name: str, **spec: Any) -> Object:
    """A controller's object whose pods are labelled `app: NAME`."""
    labels = {"app": name}
    body = {"selector": {"matchLabels": labels}, "template": template(labels), **spec}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": body}


def messages(registry: Registry, reason: str) -> list[str]:
    """What the Events of a reason say, in the order in which they were first recorded."""
    events = sorted(registry.list(EVENT), key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [event["message"] for event in events if event["reason"] == reason]


def names(objects: Sequence[Object]) -> list[str]:
    """Their names."""
    return [name_of(obj) for obj in objects]


def active_pods(registry: Registry, **labels: str) -> list[Object]:
    """The pods that count as replicas, with those labels."""
    return [
        found
        for found in registry.list(POD)
        if not is_deleted(found)
        and not is_finished(found)
        and labels.items() <= (found["metadata"].get("labels") or {}).items()
    ]


async def until(registry: Registry, done: Callable[[], object]) -> None:
    """Wait until something is true of the cluster, looking again at every change."""
    async with asyncio.timeout(30):
        with registry.changes() as changes:
            while not done():
                await anext(changes)
                await asyncio.sleep(0)


async def settled(registry: Registry) -> None:
    """Wait until nothing has been written for a while: to show that nothing more happens."""
    before = -1
    while before != registry.store.revision:
        before = registry.store.revision
        await asyncio.sleep(0.1)


def rehearse(
    registry: Registry, controllers: Sequence[Controller], scenario: Callable[[], Awaitable[None]]
) -> None:
    """Run a scenario while the controllers run."""

    async def together() -> None:
        running = asyncio.ensure_future(run_controllers(registry, controllers))
        try:
            await scenario()
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(together())


def modify(registry: Registry, kind: Kind, name: str, **spec: Any) -> Object:
    """Change fields of an object's spec, in `default`."""

    def change(live: Object) -> None:
        live["spec"].update(spec)

    changed = registry.modify(kind, "default", name, change)
    assert changed is not None
    return changed


def look(controller: Controller, registry: Registry, obj: Object) -> float | None:
    """Have a controller look at one object now."""
    return controller.reconcile(registry, (namespace_of(obj), name_of(obj)))
