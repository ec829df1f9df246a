"""ResourceQuotas and LimitRanges: what is counted, filled in and refused."""

from __future__ import annotations

from typing import Any

import controllers_lab as lab
import pytest

from gpuworkshop.lab.api.kinds import CONFIG_MAP, LIMIT_RANGE, POD, RESOURCE_QUOTA, SERVICE
from gpuworkshop.lab.api.objects import Object, annotations_of
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.quotas import ADMISSION, QuotaController


def quota(registry: Registry, hard: dict[str, str], **spec: Any) -> None:
    body = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard, **spec}}
    registry.create(RESOURCE_QUOTA, body)


def limited(hard: dict[str, str], **spec: Any) -> Registry:
    registry = lab.new_registry(ADMISSION)
    quota(registry, hard, **spec)
    return registry


def create(registry: Registry, name: str, **resources: str) -> Object:
    return registry.create(POD, lab.pod(name, containers=[lab.container(**resources)]))


def used(registry: Registry) -> dict[str, str]:
    QuotaController().reconcile(registry, ("default", "q"))
    found: dict[str, str] = registry.get(RESOURCE_QUOTA, "default", "q")["status"]["used"]
    return found


def test_the_refusal_is_in_the_words_of_the_real_one() -> None:
    registry = limited({"requests.nvidia.com/gpu": "1"})
    create(registry, "first", gpu="1")
    with pytest.raises(ApiError) as caught:
        create(registry, "second", gpu="1")
    assert caught.value.code == 403
    assert caught.value.message == (
        'pods "second" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=1, '
        "used: requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=1"
    )
    assert registry.find(POD, "default", "second") is None


def test_several_resources_are_named_in_order() -> None:
    registry = limited({"limits.memory": "1Gi", "limits.cpu": "500m"})
    with pytest.raises(ApiError, match=r"requested: limits\.cpu=1,limits\.memory=2Gi, used: limits\.cpu=0,"):
        create(registry, "big", cpu="1", memory="2Gi")


def test_what_is_used_is_counted_exactly() -> None:
    hard = {"cpu": "4", "requests.memory": "8Gi", "limits.cpu": "4", "pods": "10", "count/configmaps": "5"}
    registry = limited(hard)
    create(registry, "a", cpu="100m", memory="512Mi")
    create(registry, "b", cpu="1.5", memory="1536Mi")
    registry.create(CONFIG_MAP, {"metadata": {"name": "c", "namespace": "default"}})
    assert used(registry) == {
        "cpu": "1600m",
        "requests.memory": "2Gi",
        "limits.cpu": "1600m",
        "pods": "2",
        "count/configmaps": "1",
    }
    assert registry.get(RESOURCE_QUOTA, "default", "q")["status"]["hard"] == hard


def test_a_pod_that_has_ended_makes_room() -> None:
    registry = limited({"pods": "1", "count/pods": "2"})
    create(registry, "first")
    lab.finish(registry, "first", "Succeeded")
    create(registry, "second")
    assert used(registry) == {"pods": "1", "count/pods": "2"}
    with pytest.raises(ApiError, match="requested: count/pods=1,pods=1"):
        create(registry, "third")


def test_a_container_must_say_what_the_quota_limits() -> None:
    registry = limited({"requests.cpu": "4", "limits.memory": "8Gi"})
    with pytest.raises(ApiError) as caught:
        create(registry, "silent")
    assert caught.value.message == (
        'pods "silent" is forbidden: failed quota: q: '
        "must specify limits.memory for: main; requests.cpu for: main"
    )


def test_services_count_by_their_type() -> None:
    registry = limited({"services": "3", "services.loadbalancers": "1", "services.nodeports": "2"})
    ports = [{"port": 80}]

    def service(name: str, kind: str) -> None:
        metadata = {"name": name, "namespace": "default"}
        registry.create(SERVICE, {"metadata": metadata, "spec": {"type": kind, "ports": ports}})

    service("plain", "ClusterIP")
    service("balanced", "LoadBalancer")
    assert used(registry) == {"services": "2", "services.loadbalancers": "1", "services.nodeports": "1"}
    with pytest.raises(ApiError, match=r"services\.loadbalancers=1"):
        service("another", "LoadBalancer")


@pytest.mark.parametrize(
    ("scopes", "refused", "accepted"),
    [
        (["BestEffort"], {}, {"cpu": "1"}),
        (["NotBestEffort"], {"cpu": "1"}, {}),
    ],
)
def test_scopes(scopes: list[str], refused: dict[str, str], accepted: dict[str, str]) -> None:
    registry = limited({"pods": "0"}, scopes=scopes)
    create(registry, "accepted", **accepted)
    with pytest.raises(ApiError, match="exceeded quota"):
        create(registry, "refused", **refused)


def test_a_scope_by_priority_class() -> None:
    term = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    registry = limited({"pods": "0"}, scopeSelector={"matchExpressions": [term]})
    create(registry, "plain")
    with pytest.raises(ApiError, match="exceeded quota"):
        registry.create(POD, lab.pod("urgent", priorityClassName="high"))


def test_the_status_follows_what_happens() -> None:
    registry = limited({"pods": "5"})

    def count() -> str:
        status = registry.get(RESOURCE_QUOTA, "default", "q").get("status") or {}
        return str((status.get("used") or {}).get("pods"))

    async def scenario() -> None:
        await lab.until(registry, lambda: count() == "0")
        create(registry, "a")
        await lab.until(registry, lambda: count() == "1")
        registry.delete(POD, "default", "a")
        await lab.until(registry, lambda: count() == "0")

    lab.rehearse(registry, [QuotaController()], scenario)


def ranged(*limits: dict[str, Any]) -> Registry:
    registry = lab.new_registry(ADMISSION)
    body = {"metadata": {"name": "range", "namespace": "default"}, "spec": {"limits": list(limits)}}
    registry.create(LIMIT_RANGE, body)
    return registry


def test_defaults_are_filled_in_and_noted() -> None:
    registry = ranged(
        {"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}
    )
    pod = create(registry, "silent")
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources["limits"] == {"cpu": "1", "memory": "1Gi"}
    assert resources["requests"] == {"cpu": "100m", "memory": "1Gi"}
    assert annotations_of(pod)["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container main; cpu, memory limit for container main"
    )


def test_what_is_said_is_kept() -> None:
    registry = ranged({"type": "Container", "default": {"cpu": "1"}})
    pod = create(registry, "explicit", cpu="2")
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "2"}, "requests": {"cpu": "2"}}
    assert "kubernetes.io/limit-ranger" not in annotations_of(pod)


@pytest.mark.parametrize(
    ("limit", "asked", "words"),
    [
        ({"max": {"cpu": "1"}}, {"cpu": "2"}, "maximum cpu usage per Container is 1, but limit is 2"),
        ({"min": {"cpu": "1"}}, {"cpu": "500m"}, "minimum cpu usage per Container is 1, but request is 500m"),
        (
            {"max": {"nvidia.com/gpu": "2"}},
            {"gpu": "4"},
            "maximum nvidia.com/gpu usage per Container is 2, but limit is 4",
        ),
    ],
)
def test_bounds_of_a_container(limit: dict[str, Any], asked: dict[str, str], words: str) -> None:
    registry = ranged({"type": "Container", **limit})
    with pytest.raises(ApiError) as caught:
        create(registry, "web", **asked)
    assert caught.value.message == f'pods "web" is forbidden: {words}'


def test_bounds_of_a_whole_pod() -> None:
    registry = ranged({"type": "Pod", "max": {"cpu": "1"}})
    containers = [lab.container(cpu="750m"), {**lab.container(cpu="750m"), "name": "side"}]
    with pytest.raises(ApiError, match="maximum cpu usage per Pod is 1, but limit is 1500m"):
        registry.create(POD, lab.pod("web", containers=containers))
    with pytest.raises(ApiError, match=r"maximum cpu usage per Pod is 1\.  No limit is specified"):
        create(registry, "silent")


def test_defaults_count_in_a_quota() -> None:
    registry = ranged({"type": "Container", "default": {"cpu": "1"}})
    quota(registry, {"limits.cpu": "1"})
    create(registry, "first")
    with pytest.raises(ApiError, match=r"exceeded quota: q, requested: limits\.cpu=1, used: limits\.cpu=1"):
        create(registry, "second")


def test_nonsense_is_left_to_validation() -> None:
    registry = limited({"pods": "10", "requests.cpu": "10"})
    with pytest.raises(ApiError) as caught:
        registry.create(
            POD, lab.pod("odd", containers=[{"image": "x", "resources": {"requests": {"cpu": "many"}}}])
        )
    assert caught.value.reason == "Invalid"
