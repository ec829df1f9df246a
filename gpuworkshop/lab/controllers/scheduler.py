"""The scheduler: a node for every pod that has none, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuworkshop.lab.api.kinds import NODE, PERSISTENT_VOLUME_CLAIM, POD, Kind
from gpuworkshop.lab.api.listening import ObjectChange
from gpuworkshop.lab.api.objects import Object, condition, is_deleted, labels_of, name_of, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import scoring
from gpuworkshop.lab.controllers.conditions import conditions_of, with_condition, write_status
from gpuworkshop.lab.controllers.fitting import Fit, Refusal, explanation
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, own_key
from gpuworkshop.lab.controllers.pods import is_finished
from gpuworkshop.lab.controllers.volume_claims import missing_claim

SCHEDULER = "default-scheduler"
# A pod that fits nowhere is tried again after so long, whatever happens; of two tries within a second the
# real scheduler, which waits so long after the first, makes one.
RETRY_S, SAME_TRY_S = 300.0, 1.0


class Scheduler(Controller):
    """Binds pods to nodes. Pods that fit nowhere are tried again when nodes change, or pods make room."""

    name = SCHEDULER
    watches: Mapping[Kind, Keys] = {POD: own_key, NODE: own_key, PERSISTENT_VOLUME_CLAIM: own_key}

    def __init__(self) -> None:
        self._waiting: dict[Key, float] = {}  # and when it was last told of each

    def keys(self, _: Registry, change: ObjectChange) -> Iterable[Key]:
        """The pod, and those that wait, where the change may help them."""
        if change.kind is POD and not change.object["spec"].get("nodeName"):
            yield namespace_of(change.object), name_of(change.object)
        elif _may_help(change):
            yield from tuple(self._waiting)

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Bind one pod, or say why not."""
        told = self._waiting.pop(key, None)
        pod = registry.find(POD, *key)
        if pod is None or not _is_ours(pod):
            return None
        if pod["spec"].get("schedulingGates"):
            words = "Scheduling is blocked due to non-empty scheduling gates"
            _set_scheduled(registry, pod, "False", "SchedulingGated", words)
            return None
        fitting, why = _tried(registry, pod)
        if fitting is not None:
            _bind(registry, pod, name_of(fitting))
            return None
        known = (condition(pod, "PodScheduled") or {}).get("message")
        if told is None or known != why or registry.now() - told >= SAME_TRY_S:
            _set_scheduled(registry, pod, "False", "Unschedulable", why)
            registry.event(pod, "Warning", "FailedScheduling", why, SCHEDULER)
            told = registry.now()
        self._waiting[key] = told
        return RETRY_S


def _tried(registry: Registry, pod: Object) -> tuple[Object | None, str]:
    """The best node for the pod; if none fits, why."""
    nodes = [node for node in registry.list(NODE) if not is_deleted(node)]
    policy = pod["spec"].get("preemptionPolicy") or ""
    if missing := missing_claim(registry, pod):
        return None, explanation([Refusal([missing], crowded=False)] * len(nodes), policy, missing)
    fit = Fit(registry, pod)
    tried = [(node, fit.refusal(node)) for node in nodes]
    if fitting := [node for node, refusal in tried if refusal is None]:
        return scoring.best(registry, pod, fit.requests, fitting), ""
    return None, explanation([refusal for _, refusal in tried if refusal is not None], policy)


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
    if change.kind is PERSISTENT_VOLUME_CLAIM:
        return True
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


def _set_scheduled(registry: Registry, pod: Object, status: str, reason: str = "", message: str = "") -> None:
    found = with_condition(
        conditions_of(pod), "PodScheduled", status, reason, message, registry.now(), lastProbeTime=None
    )
    conditions = [{key: value for key, value in each.items() if value != ""} for each in found]
    write_status(
        registry, POD, pod, {"phase": "Pending", **(pod.get("status") or {}), "conditions": conditions}
    )
