"""PodDisruptionBudgets: their counts, and the evictions that they refuse."""

from __future__ import annotations

from typing import Any

import controllers_lab as lab
import pytest

from gpuworkshop.lab.api.kinds import DEPLOYMENT, POD, POD_DISRUPTION_BUDGET, REPLICA_SET
from gpuworkshop.lab.api.objects import Object, condition
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.deployments import DeploymentController
from gpuworkshop.lab.controllers.disruptions import DisruptionController, check_eviction
from gpuworkshop.lab.controllers.replicasets import ReplicaSetController


def budget(registry: Registry, name: str = "guard", **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "default"}
    body = {"selector": {"matchLabels": {"app": "web"}}, **spec}
    created = registry.create(POD_DISRUPTION_BUDGET, {"metadata": metadata, "spec": body})
    lab.look(DisruptionController(), registry, created)
    return registry.get(POD_DISRUPTION_BUDGET, "default", name)


def running(replicas: int, ready: int) -> Registry:
    """A Deployment's pods, of which that many are ready."""
    registry = lab.new_registry()
    lab.look(
        DeploymentController(), registry, registry.create(DEPLOYMENT, lab.workload("web", replicas=replicas))
    )
    lab.look(ReplicaSetController(), registry, registry.list(REPLICA_SET)[0])
    for number, pod in enumerate(registry.list(POD)):
        lab.run(registry, pod, ready=number < ready)
    return registry


@pytest.mark.parametrize(
    ("spec", "desired", "allowed"),
    [
        ({"minAvailable": 3}, 3, 1),
        ({"minAvailable": "50%"}, 2, 2),
        ({"maxUnavailable": 1}, 3, 1),
        ({"maxUnavailable": "25%"}, 3, 1),
        ({"maxUnavailable": 0}, 4, 0),
        ({"minAvailable": 9}, 9, 0),
    ],
)
def test_how_many_may_go(spec: dict[str, Any], desired: int, allowed: int) -> None:
    status = budget(running(4, 4), **spec)["status"]
    assert (status["desiredHealthy"], status["disruptionsAllowed"]) == (desired, allowed)
    assert (status["expectedPods"], status["currentHealthy"], status["observedGeneration"]) == (4, 4, 1)
    found = condition({"status": status}, "DisruptionAllowed") or {}
    assert found["reason"] == ("SufficientPods" if allowed else "InsufficientPods")


def test_an_eviction_is_refused_in_the_words_of_the_real_one() -> None:
    registry = running(2, 2)
    budget(registry, minAvailable=2)
    with pytest.raises(ApiError) as caught:
        check_eviction(registry, registry.list(POD)[0])
    assert (caught.value.code, caught.value.reason) == (429, "TooManyRequests")
    assert caught.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert caught.value.details["causes"] == [
        {
            "reason": "DisruptionBudget",
            "message": "The disruption budget guard needs 2 healthy pods and has 2 currently",
        }
    ]


def test_evictions_in_a_row_see_those_before_them() -> None:
    registry = running(3, 3)
    budget(registry, maxUnavailable=1)
    first, second, _ = registry.list(POD)
    check_eviction(registry, first)
    registry.delete(POD, "default", first["metadata"]["name"])
    with pytest.raises(ApiError, match="disruption budget"):
        check_eviction(registry, second)


def test_pods_without_a_budget_or_that_do_not_run_may_go() -> None:
    registry = running(1, 1)
    budget(registry, minAvailable=1)
    check_eviction(registry, registry.create(POD, lab.pod("other", {"app": "other"})))
    check_eviction(registry, registry.create(POD, lab.pod("pending", {"app": "web"})))
    lab.finish(registry, registry.list(POD)[-1]["metadata"]["name"], "Succeeded")
    check_eviction(registry, registry.list(POD)[-1])


def test_a_broken_pod_may_go_while_the_others_suffice() -> None:
    registry = running(3, 2)
    budget(registry, minAvailable=2)
    broken = next(pod for pod in registry.list(POD) if (condition(pod, "Ready") or {})["status"] == "False")
    check_eviction(registry, broken)


def test_a_broken_pod_stays_while_too_few_are_healthy_unless_it_may_always_go() -> None:
    registry = running(3, 1)
    budget(registry, minAvailable=2)
    broken = next(pod for pod in registry.list(POD) if (condition(pod, "Ready") or {})["status"] == "False")
    with pytest.raises(ApiError, match="disruption budget"):
        check_eviction(registry, broken)
    lab.modify(registry, POD_DISRUPTION_BUDGET, "guard", unhealthyPodEvictionPolicy="AlwaysAllow")
    check_eviction(registry, broken)


def test_two_budgets_are_one_too_many() -> None:
    registry = running(1, 1)
    budget(registry, "one", minAvailable=0)
    budget(registry, "two", minAvailable=0)
    with pytest.raises(ApiError, match="more than one PodDisruptionBudget"):
        check_eviction(registry, registry.list(POD)[0])


def test_the_counts_follow_the_pods() -> None:
    registry = running(2, 1)
    budget(registry, minAvailable=1)

    def allowed() -> int:
        status = registry.get(POD_DISRUPTION_BUDGET, "default", "guard")["status"]
        return int(status["disruptionsAllowed"])

    async def scenario() -> None:
        assert allowed() == 0
        for pod in registry.list(POD):
            lab.run(registry, pod)
        await lab.until(registry, lambda: allowed() == 1)

    lab.rehearse(registry, [DisruptionController()], scenario)
