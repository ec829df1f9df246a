"""PodDisruptionBudgets: how many of their pods may be evicted now, and the refusal when none may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpuworkshop.lab.api.kinds import POD, POD_DISRUPTION_BUDGET, Kind
from gpuworkshop.lab.api.object_selectors import selects
from gpuworkshop.lab.api.objects import (
    Object,
    controller_of,
    is_deleted,
    labels_of,
    meta,
    name_of,
    namespace_of,
)
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.conditions import conditions_of, with_condition, write_status
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, own_key
from gpuworkshop.lab.controllers.pods import is_active, is_finished, is_ready, phase_of
from gpuworkshop.lab.controllers.rollout import share


def _budgets_of(registry: Registry, pod: Object) -> list[Object]:
    return [
        budget
        for budget in index_of(registry).within(POD_DISRUPTION_BUDGET, namespace_of(pod))
        if selects(budget["spec"].get("selector"), labels_of(pod))
    ]


def _pod_keys(registry: Registry, pod: Object) -> Iterable[Key]:
    return [(namespace_of(budget), name_of(budget)) for budget in _budgets_of(registry, pod)]


class DisruptionController(Controller):
    """Counts what each budget allows."""

    name = "disruption-controller"
    watches: Mapping[Kind, Keys] = {POD_DISRUPTION_BUDGET: own_key, POD: _pod_keys}

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Write the counts."""
        budget = registry.find(POD_DISRUPTION_BUDGET, *key)
        if budget is None or is_deleted(budget):
            return None
        status: dict[str, Any] = _counts(registry, budget)
        status["observedGeneration"] = meta(budget)["generation"]
        enough = status["disruptionsAllowed"] > 0
        words = ("True", "SufficientPods") if enough else ("False", "InsufficientPods")
        status["conditions"] = with_condition(
            conditions_of(budget),
            "DisruptionAllowed",
            *words,
            "",
            registry.now(),
            observedGeneration=meta(budget)["generation"],
        )
        write_status(registry, POD_DISRUPTION_BUDGET, budget, status)
        return None


def check_eviction(registry: Registry, pod: Object) -> None:
    """Refuse, as 429, the eviction of a pod that its budget does not allow. Asks the pods, not the status."""
    if phase_of(pod) == "Pending" or is_finished(pod):
        return
    budgets = _budgets_of(registry, pod)
    if len(budgets) > 1:
        message = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        raise ApiError(500, "InternalError", message)
    for budget in budgets:
        status = _counts(registry, budget)
        spares_broken = budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
        needed, healthy = status["desiredHealthy"], status["currentHealthy"]
        if not is_ready(pod) and (spares_broken or healthy >= needed > 0):
            return
        if status["disruptionsAllowed"] <= 0:
            message = f"The disruption budget {name_of(budget)} needs {needed} healthy pods and has "
            message += f"{healthy} currently"
            raise ApiError(
                429,
                "TooManyRequests",
                "Cannot evict pod as it would violate the pod's disruption budget.",
                {"causes": [{"reason": "DisruptionBudget", "message": message}]},
            )


def _counts(registry: Registry, budget: Object) -> dict[str, Any]:
    index, spec = index_of(registry), budget["spec"]
    pods = [
        pod
        for pod in index.within(POD, namespace_of(budget))
        if not is_finished(pod) and selects(spec.get("selector"), labels_of(pod))
    ]
    least = spec.get("minAvailable")
    if isinstance(least, int):
        expected, desired = len(pods), least
    elif least is not None:
        expected = _expected(registry, pods)
        desired = share(least, expected, up=True)
    else:
        expected = _expected(registry, pods)
        desired = max(0, expected - share(spec.get("maxUnavailable", 1), expected, up=True))
    healthy = sum(is_active(pod) and is_ready(pod) for pod in pods)
    return {
        "expectedPods": expected,
        "desiredHealthy": desired,
        "currentHealthy": healthy,
        "disruptionsAllowed": max(0, healthy - desired) if expected else 0,
    }


def _expected(registry: Registry, pods: Iterable[Object]) -> int:
    """The replicas that the pods' controllers want, and the pods without one."""
    wanted: dict[str, int] = {}
    alone = 0
    for pod in pods:
        reference = controller_of(pod)
        kind = _scaled(registry, reference) if reference else None
        owner = registry.find(kind, namespace_of(pod), reference["name"]) if kind and reference else None
        owner = _outermost(registry, owner) if owner else None
        if owner is None:
            alone += 1
        else:
            wanted[meta(owner)["uid"]] = int(owner["spec"].get("replicas", 1))
    return alone + sum(wanted.values())


def _scaled(registry: Registry, reference: Any) -> Kind | None:
    kind = registry.kinds.of(reference["apiVersion"], reference["kind"])
    return kind if kind and "scale" in kind.subresources else None


def _outermost(registry: Registry, owner: Object) -> Object:
    """The Deployment of a ReplicaSet that has one: its scale counts."""
    reference = controller_of(owner)
    kind = _scaled(registry, reference) if reference else None
    found = registry.find(kind, namespace_of(owner), reference["name"]) if kind and reference else None
    return found or owner
