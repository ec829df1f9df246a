"""The scheduler: a node for every pod that has none, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuworkshop.lab.api.kinds import NODE, POD, Kind
from gpuworkshop.lab.api.listening import ObjectChange
from gpuworkshop.lab.api.objects import Object, condition, is_deleted, labels_of, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import scoring
from gpuworkshop.lab.controllers.conditions import conditions_of, with_condition, write_status
from gpuworkshop.lab.controllers.fitting import Fit, Refusal, explanation
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, own_key
from gpuworkshop.lab.controllers.pods import is_finished

SCHEDULER = "default-scheduler"


class Scheduler(Controller):
    """Binds pods to nodes. Pods that fit nowhere are tried again when nodes change, or pods make room."""

    name = SCHEDULER
    watches: Mapping[Kind, Keys] = {POD: own_key, NODE: own_key}

    def __init__(self) -> None:
        self._waiting: set[Key] = set()

    def keys(self, _: Registry, change: ObjectChange) -> Iterable[Key]:
        """The pod, and those that wait, where the change may help them."""
        if change.kind is POD and not change.object["spec"].get("nodeName"):
            yield namespace_of(change.object), name_of(change.object)
        elif _may_help(change):
            yield from self._waiting

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Bind one pod, or say why not."""
        self._waiting.discard(key)
        pod = registry.find(POD, *key)
        if pod is None or not _is_ours(pod):
            return None
        if pod["spec"].get("schedulingGates"):
            _report(
                registry, pod, "SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates"
            )
            return None
        fit = Fit(registry, pod)
        fitting: list[Object] = []
        refusals: list[Refusal] = []
        for node in registry.list(NODE):
            refusal = None if is_deleted(node) else fit.refusal(node)
            if refusal is not None:
                refusals.append(refusal)
            elif not is_deleted(node):
                fitting.append(node)
        if fitting:
            _bind(registry, pod, name_of(scoring.best(registry, pod, fit.requests, fitting)))
            return None
        self._waiting.add(key)
        policy = pod["spec"].get("preemptionPolicy") or ""
        _report(registry, pod, "Unschedulable", explanation(refusals, policy))
        return None


def _is_ours(pod: Object) -> bool:
    spec = pod["spec"]
    return (
        not spec.get("nodeName")
        and not is_deleted(pod)
        and not is_finished(pod)
        and spec.get("schedulerName", SCHEDULER) == SCHEDULER
    )


def _may_help(change: ObjectChange) -> bool:
    """Whether a pod that waits might fit now."""
    new, old = change.object, change.previous
    if change.kind is NODE:
        return old is None or change.type == "DELETED" or _offer(new) != _offer(old)
    if change.type == "DELETED" or is_finished(new):
        return True
    return old is None or not old["spec"].get("nodeName") or labels_of(old) != labels_of(new)


def _offer(node: Object) -> tuple[object, ...]:
    spec = node.get("spec") or {}
    return (
        (node.get("status") or {}).get("allocatable"),
        labels_of(node),
        spec.get("taints"),
        spec.get("unschedulable"),
    )


def _bind(registry: Registry, pod: Object, node: str) -> None:
    def change(live: Object) -> None:
        live["spec"]["nodeName"] = node

    bound = registry.modify(POD, namespace_of(pod), name_of(pod), change, "binding")
    if bound is None:
        return
    _set_scheduled(registry, bound, "True")
    message = f"Successfully assigned {namespace_of(pod)}/{name_of(pod)} to {node}"
    registry.event(pod, "Normal", "Scheduled", message, SCHEDULER)


def _report(registry: Registry, pod: Object, reason: str, message: str) -> None:
    """The pod's condition, and an Event when it says something new."""
    known = condition(pod, "PodScheduled") or {}
    if (known.get("reason"), known.get("message")) == (reason, message):
        return
    _set_scheduled(registry, pod, "False", reason, message)
    if reason == "Unschedulable":
        registry.event(pod, "Warning", "FailedScheduling", message, SCHEDULER)


def _set_scheduled(registry: Registry, pod: Object, status: str, reason: str = "", message: str = "") -> None:
    found = with_condition(
        conditions_of(pod), "PodScheduled", status, reason, message, registry.now(), lastProbeTime=None
    )
    conditions = [{key: value for key, value in each.items() if value != ""} for each in found]
    write_status(
        registry, POD, pod, {"phase": "Pending", **(pod.get("status") or {}), "conditions": conditions}
    )
