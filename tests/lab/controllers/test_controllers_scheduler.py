"""The scheduler: where pods go, and the words for those that go nowhere."""

from __future__ import annotations

from typing import Any

import controllers_lab as lab
import pytest

from gpuworkshop.lab.api.kinds import EVENT, NODE, PERSISTENT_VOLUME_CLAIM, POD
from gpuworkshop.lab.api.objects import Object, condition, copy_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.conditions import write_status
from gpuworkshop.lab.controllers.scheduler import Scheduler
from gpuworkshop.lab.controllers.volume_claims import VolumeClaimController

GPU_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
FULL = "No preemption victims found for incoming pod"
HOPELESS = "Preemption is not helpful for scheduling"


def schedule(registry: Registry, name: str = "web", **spec: Any) -> Object:
    """Create a pod, have the scheduler look at it once, and return it as it is then."""
    labels = spec.pop("labels", {})
    created = registry.create(POD, lab.pod(name, labels, **spec))
    lab.look(Scheduler(), registry, created)
    return registry.get(POD, "default", name)


def why(pod: Object) -> str:
    """What its condition says while it is pending."""
    assert "nodeName" not in pod["spec"]
    found = condition(pod, "PodScheduled") or {}
    assert (found["status"], found["reason"]) == ("False", "Unschedulable")
    return str(found["message"])


def asking(**resources: str) -> list[dict[str, Any]]:
    return [lab.container(**resources)]


def test_a_pod_is_bound_and_told_so() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "one")
    pod = schedule(registry)
    assert pod["spec"]["nodeName"] == "one"
    found = condition(pod, "PodScheduled") or {}
    assert found["status"] == "True"
    assert "reason" not in found
    assert lab.messages(registry, "Scheduled") == ["Successfully assigned default/web to one"]


def test_without_nodes() -> None:
    registry = lab.new_registry()
    assert why(schedule(registry)) == "no nodes available to schedule pods"


def test_the_reasons_are_counted_and_sorted_as_by_the_real_one() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "cpu")
    lab.add_node(registry, "gpu", gpu="4", taints=[GPU_TAINT])
    message = why(schedule(registry, containers=asking(gpu="1")))
    assert message == (
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, "
        "1 node(s) had untolerated taint(s). no new claims to deallocate, "
        f"preemption: 0/2 nodes are available: 2 {HOPELESS}."
    )
    assert lab.messages(registry, "FailedScheduling") == [message]


def test_two_nodes_without_gpus() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "one")
    lab.add_node(registry, "two")
    assert why(schedule(registry, containers=asking(gpu="1"))) == (
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. no new claims to deallocate, "
        f"preemption: 0/2 nodes are available: 2 {HOPELESS}."
    )


def test_one_node_may_lack_several_resources() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "one", cpu="1", memory="1Gi")
    message = why(schedule(registry, containers=asking(cpu="1500m", memory="2Gi")))
    assert message.startswith("0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. ")


def test_a_cordoned_node_and_one_of_other_labels() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "cordoned")
    registry.modify(NODE, "", "cordoned", lambda live: live["spec"].update(unschedulable=True))
    lab.add_node(registry, "other", labels={"disk": "hdd"})
    assert why(schedule(registry, nodeSelector={"disk": "ssd"})) == (
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) were unschedulable. no new claims to deallocate, "
        f"preemption: 0/2 nodes are available: 2 {HOPELESS}."
    )


def test_a_pod_that_never_preempts_says_so() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "one")
    message = why(schedule(registry, containers=asking(gpu="1"), preemptionPolicy="Never"))
    assert message.endswith(
        "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
    )


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "nvidia.com/gpu", "operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "nvidia.com/gpu", "value": "present"},
        {"operator": "Exists"},
    ],
)
def test_tolerations_that_fit(toleration: dict[str, str]) -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "gpu", taints=[GPU_TAINT])
    assert schedule(registry, tolerations=[toleration])["spec"]["nodeName"] == "gpu"


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoExecute"},
        {"key": "nvidia.com/gpu", "value": "absent"},
        {"key": "amd.com/gpu", "operator": "Exists"},
    ],
)
def test_tolerations_that_do_not_fit(toleration: dict[str, str]) -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "gpu", taints=[GPU_TAINT])
    assert "untolerated taint" in why(schedule(registry, tolerations=[toleration]))


def test_gpus_are_counted_down_and_freed_again() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "gpu", gpu="2")
    scheduler = Scheduler()

    async def scenario() -> None:
        for name in ("a", "b", "c"):
            registry.create(POD, lab.pod(name, containers=asking(gpu="1")))
        await lab.until(registry, lambda: lab.messages(registry, "FailedScheduling"))
        waiting = [found for found in registry.list(POD) if "nodeName" not in found["spec"]]
        assert len(waiting) == 1
        ended = next(found for found in registry.list(POD) if "nodeName" in found["spec"])
        lab.finish(registry, ended["metadata"]["name"], "Succeeded")
        await lab.until(registry, lambda: all("nodeName" in found["spec"] for found in registry.list(POD)))

    lab.rehearse(registry, [scheduler], scenario)


def test_a_pending_pod_is_tried_again_when_nodes_change() -> None:
    registry = lab.new_registry()
    registry.create(POD, lab.pod("web", containers=asking(gpu="1")))

    def grow(live: Object) -> None:
        live["status"]["allocatable"]["nvidia.com/gpu"] = "1"

    async def scenario() -> None:
        await lab.until(registry, lambda: lab.messages(registry, "FailedScheduling"))
        lab.add_node(registry, "one")
        await lab.until(registry, lambda: len(lab.messages(registry, "FailedScheduling")) == 2)
        registry.modify(NODE, "", "one", grow, "status")
        await lab.until(registry, lambda: "nodeName" in registry.get(POD, "default", "web")["spec"])

    lab.rehearse(registry, [Scheduler()], scenario)
    assert lab.messages(registry, "FailedScheduling") == [
        "no nodes available to schedule pods",
        "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. no new claims to deallocate, "
        f"preemption: 0/1 nodes are available: 1 {HOPELESS}.",
    ]


def test_a_full_node_is_not_one_that_is_too_small() -> None:
    registry = lab.new_registry()
    for name in ("a", "b"):
        lab.add_node(registry, name, gpu="8")
    lab.add_node(registry, "cpu")
    schedule(registry, "first", containers=asking(gpu="8"), nodeSelector={"kubernetes.io/hostname": "a"})
    assert why(schedule(registry, "huge", containers=asking(gpu="64"))) == (
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. no new claims to deallocate, "
        f"preemption: 0/3 nodes are available: 3 {HOPELESS}."
    )
    schedule(registry, "second", containers=asking(gpu="1"))
    assert why(schedule(registry, "third", containers=asking(gpu="8"))) == (
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. no new claims to deallocate, "
        f"preemption: 0/3 nodes are available: 1 {HOPELESS}, 2 {FULL}."
    )


def attempts(registry: Registry) -> list[int]:
    return [event["count"] for event in registry.list(EVENT) if event["reason"] == "FailedScheduling"]


def test_the_same_failure_again_is_counted() -> None:
    clock = lab.Clock()
    registry, scheduler = lab.new_registry(clock=clock), Scheduler()
    pod = registry.create(POD, lab.pod("web"))
    assert lab.look(scheduler, registry, pod) == 300.0
    before = registry.store.revision
    lab.look(scheduler, registry, pod)
    assert registry.store.revision == before, "two looks at a time are one attempt"
    clock.now += 300
    lab.look(scheduler, registry, pod)
    assert attempts(registry) == [2]
    again = Registry(registry.store, clock=clock)  # as after a restart of the lab
    lab.look(Scheduler(), again, pod)
    assert attempts(again) == [3]


def constraint(key: str = "zone", **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "web"}}
    plain = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {**plain, "labelSelector": selector, **more}


def spread(registry: Registry, name: str, *constraints: dict[str, Any], **spec: Any) -> Object:
    return schedule(
        registry, name, labels={"app": "web"}, topologySpreadConstraints=list(constraints), **spec
    )


def zones(registry: Registry, **of_nodes: str) -> None:
    for name, zone in of_nodes.items():
        lab.add_node(registry, name, labels={"zone": zone} if zone else {})


ONLY_A = {"nodeSelector": {"kubernetes.io/hostname": "a"}}


def test_pods_are_spread_over_zones_or_wait() -> None:
    registry = lab.new_registry()
    zones(registry, a="east", b="west", c="")
    found = [spread(registry, f"web-{number}", constraint())["spec"]["nodeName"] for number in range(4)]
    assert sorted(found) == ["a", "a", "b", "b"]
    registry.modify(NODE, "", "b", lambda live: live["spec"].update(unschedulable=True))
    spread(registry, "web-4", constraint())
    assert why(spread(registry, "web-5", constraint())) == (
        "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, 1 node(s) didn't "
        "match pod topology spread constraints (missing required label), 1 node(s) were unschedulable. "
        f"no new claims to deallocate, preemption: 0/3 nodes are available: 1 {FULL}, 2 {HOPELESS}."
    )


def test_a_wish_for_spreading_keeps_no_pod_waiting() -> None:
    registry = lab.new_registry()
    zones(registry, a="east", b="west")
    wish = constraint(whenUnsatisfiable="ScheduleAnyway")
    for number in range(3):
        assert spread(registry, f"web-{number}", wish, nodeName="")["spec"]["nodeName"] in ("a", "b")


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({}, True),  # zones that the pod may not go to do not count
        ({"nodeAffinityPolicy": "Ignore"}, False),
        ({"minDomains": 2}, False),  # of two wanted zones it may go to one, so that the fewest pods are 0
        ({"maxSkew": 2, "nodeAffinityPolicy": "Ignore"}, True),
        ({"labelSelector": {"matchLabels": {"app": "other"}}, "nodeAffinityPolicy": "Ignore"}, True),
        ({"matchLabelKeys": ["rev"], "nodeAffinityPolicy": "Ignore"}, True),
    ],
)
def test_what_counts_in_spreading(more: dict[str, Any], fits: bool) -> None:
    registry = lab.new_registry()
    zones(registry, a="east", b="west")
    first = lab.pod("first", {"app": "web", "rev": "1"}, **ONLY_A)
    lab.look(Scheduler(), registry, registry.create(POD, first))
    labels = {"app": "web", "rev": "2"}
    second = lab.pod("second", labels, topologySpreadConstraints=[constraint(**more)], **ONLY_A)
    lab.look(Scheduler(), registry, registry.create(POD, second))
    assert ("nodeName" in registry.get(POD, "default", "second")["spec"]) is fits


def test_taints_may_keep_a_zone_out_of_the_count() -> None:
    registry = lab.new_registry()
    zones(registry, a="east")
    lab.add_node(registry, "b", labels={"zone": "west"}, taints=[GPU_TAINT])
    spread(registry, "first", constraint())
    assert "didn't match pod topology spread" in why(spread(registry, "second", constraint()))
    honoured = constraint(nodeTaintsPolicy="Honor")
    assert spread(registry, "third", honoured)["spec"]["nodeName"] == "a"


def claiming(name: str) -> list[dict[str, Any]]:
    return [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]


def test_a_pod_waits_for_its_claim() -> None:
    registry, scheduler = lab.new_registry(), Scheduler()
    lab.add_node(registry, "one")
    said = (
        "0/1 nodes are available: {}. no new claims to deallocate, "
        f"preemption: 0/1 nodes are available: 1 {HOPELESS}."
    )
    pod = schedule(registry, volumes=claiming("data"))
    assert why(pod) == said.format('persistentvolumeclaim "data" not found')
    size = {"requests": {"storage": "1Gi"}}
    metadata = {"name": "data", "namespace": "default"}
    claim = registry.create(
        PERSISTENT_VOLUME_CLAIM,
        {"metadata": metadata, "spec": {"accessModes": ["ReadWriteOnce"], "resources": size}},
    )
    assert claim["status"] == {"phase": "Pending"}
    lab.look(scheduler, registry, pod)
    pod = registry.get(POD, "default", "web")
    assert why(pod) == said.format("pod has unbound immediate PersistentVolumeClaims")
    lab.look(VolumeClaimController(), registry, claim)
    assert "emptyDir" in lab.messages(registry, "NoStorage")[0]
    write_status(registry, PERSISTENT_VOLUME_CLAIM, claim, {"phase": "Bound"})
    lab.look(scheduler, registry, pod)
    assert registry.get(POD, "default", "web")["spec"]["nodeName"] == "one"


def test_a_claim_that_comes_wakes_its_pod() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "one")
    registry.create(POD, lab.pod("web", volumes=claiming("data")))

    async def scenario() -> None:
        await lab.until(registry, lambda: lab.messages(registry, "FailedScheduling"))
        metadata = {"name": "data", "namespace": "default"}
        size = {"requests": {"storage": "1Gi"}}
        spec = {"accessModes": ["ReadWriteOnce"], "resources": size}
        registry.create(PERSISTENT_VOLUME_CLAIM, {"metadata": metadata, "spec": spec})
        await lab.until(registry, lambda: len(lab.messages(registry, "FailedScheduling")) == 2)

    lab.rehearse(registry, [Scheduler()], scenario)


def test_the_number_of_pods_is_a_resource() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "small", pods="1")
    schedule(registry, "first")
    assert why(schedule(registry, "second")).startswith("0/1 nodes are available: 1 Too many pods. ")


def test_an_init_container_counts_where_it_asks_for_more() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "one", cpu="2")
    init = [{**lab.container(cpu="3"), "name": "init"}]
    assert "Insufficient cpu" in why(schedule(registry, initContainers=init, containers=asking(cpu="1")))


def test_pods_without_an_owner_are_spread_too() -> None:
    registry = lab.new_registry()
    for name in ("a", "b", "c"):
        lab.add_node(registry, name)
    found = [schedule(registry, f"pod-{number}")["spec"]["nodeName"] for number in range(6)]
    assert sorted(found) == ["a", "a", "b", "b", "c", "c"]


def test_the_emptier_node_is_preferred() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "big", cpu="16")
    lab.add_node(registry, "small", cpu="2")
    found = [
        schedule(registry, f"pod-{number}", containers=asking(cpu="1"))["spec"]["nodeName"]
        for number in range(3)
    ]
    assert found == ["big"] * 3


def test_preferred_affinity_and_taints_to_avoid() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "a", taints=[{**GPU_TAINT, "effect": "PreferNoSchedule"}])
    lab.add_node(registry, "b")
    lab.add_node(registry, "c", labels={"zone": "near"})
    assert schedule(registry, "first")["spec"]["nodeName"] == "b"
    near = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["near"]}]}
    preferred = [{"weight": 10, "preference": near}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    for number in range(3):
        assert schedule(registry, f"liked-{number}", affinity=affinity)["spec"]["nodeName"] == "c"


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ({"key": "gpus", "operator": "Gt", "values": ["3"]}, True),
        ({"key": "gpus", "operator": "Lt", "values": ["3"]}, False),
        ({"key": "gpus", "operator": "Exists"}, True),
        ({"key": "gpus", "operator": "DoesNotExist"}, False),
        ({"key": "gpus", "operator": "NotIn", "values": ["4"]}, False),
        ({"key": "other", "operator": "NotIn", "values": ["4"]}, True),
    ],
)
def test_required_node_affinity(expression: dict[str, Any], fits: bool) -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "one", labels={"gpus": "4"})
    terms = [{"matchExpressions": [expression]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = schedule(registry, affinity={"nodeAffinity": required})
    assert ("nodeName" in pod["spec"]) is fits


def _affinity(side: str, app: str, key: str = "kubernetes.io/hostname") -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_pods_keep_apart_from_their_like() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "a")
    lab.add_node(registry, "b")
    apart = {"labels": {"app": "db"}, "affinity": _affinity("podAntiAffinity", "db")}
    found = {schedule(registry, f"db-{number}", **copy_of(apart))["spec"]["nodeName"] for number in range(2)}
    assert found == {"a", "b"}
    assert why(schedule(registry, "db-2", **copy_of(apart))).startswith(
        "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules. "
    )


def test_a_pod_is_kept_off_by_what_it_avoids() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "a")
    schedule(registry, "noisy", labels={"app": "noisy"})
    message = why(schedule(registry, affinity=_affinity("podAntiAffinity", "noisy")))
    assert "1 node(s) didn't match pod anti-affinity rules. " in message


def test_pods_go_where_their_friends_are_in_the_same_zone() -> None:
    registry = lab.new_registry()
    for name, zone in (("a", "east"), ("b", "west"), ("c", "west")):
        lab.add_node(registry, name, labels={"zone": zone})
    schedule(registry, "cache", labels={"app": "cache"}, nodeSelector={"kubernetes.io/hostname": "b"})
    near = _affinity("podAffinity", "cache", "zone")
    assert schedule(registry, "web", affinity=near)["spec"]["nodeName"] in ("b", "c")
    message = why(schedule(registry, "lost", affinity=_affinity("podAffinity", "nobody", "zone")))
    assert "3 node(s) didn't match pod affinity rules. " in message


def test_the_first_of_a_group_need_not_find_itself() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "a")
    near = _affinity("podAffinity", "web")
    assert schedule(registry, labels={"app": "web"}, affinity=near)["spec"]["nodeName"] == "a"


def test_ports_of_the_host_are_taken_once() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "a")
    containers = [{**lab.container(), "ports": [{"containerPort": 80, "hostPort": 8080}]}]
    schedule(registry, "first", containers=copy_of({"c": containers})["c"])
    assert "1 node(s) didn't have free ports for the requested pod ports. " in why(
        schedule(registry, "second", containers=containers)
    )


def test_another_schedulers_pods_and_gated_ones_are_left_alone() -> None:
    registry = lab.new_registry()
    lab.add_node(registry, "a")
    assert "nodeName" not in schedule(registry, "theirs", schedulerName="other")["spec"]
    gated = schedule(registry, "gated", schedulingGates=[{"name": "wait"}])
    assert (condition(gated, "PodScheduled") or {})["reason"] == "SchedulingGated"
