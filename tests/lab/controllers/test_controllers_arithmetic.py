"""The arithmetic of rollouts, selectors and requests, without a cluster."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import controllers_lab as lab
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuworkshop.lab.api.object_selectors import selects
from gpuworkshop.lab.controllers.node_affinity import allows, named_nodes
from gpuworkshop.lab.controllers.requests import pod_total
from gpuworkshop.lab.controllers.rollout import Bounds, bounds_of, proportional, size_of_new, sizes_of_old
from gpuworkshop.lab.controllers.templates import normalised, template_hash


def replica_set(name: str, wanted: int, available: int, most: int = 0) -> dict[str, Any]:
    notes = {"deployment.kubernetes.io/max-replicas": str(most)} if most else {}
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": f"2024-01-01T00:00:0{name[-1]}Z",
            "annotations": notes,
        },
        "spec": {"replicas": wanted},
        "status": {"replicas": wanted, "availableReplicas": available},
    }


@pytest.mark.parametrize(
    ("replicas", "rolling", "bounds"),
    [
        (4, {}, Bounds(4, 1, 1)),
        (10, {"maxSurge": "25%", "maxUnavailable": "25%"}, Bounds(10, 3, 2)),
        (1, {}, Bounds(1, 1, 0)),
        (3, {"maxSurge": 0, "maxUnavailable": 0}, Bounds(3, 0, 1)),
        (3, {"maxSurge": "100%", "maxUnavailable": 0}, Bounds(3, 3, 0)),
        (2, {"maxSurge": 0, "maxUnavailable": 5}, Bounds(2, 0, 2)),
    ],
)
def test_surge_is_rounded_up_and_unavailable_down(
    replicas: int, rolling: dict[str, Any], bounds: Bounds
) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    assert bounds_of({"spec": {"replicas": replicas, "strategy": strategy}}) == bounds


counts = st.integers(0, 12)


@given(replicas=st.integers(1, 12), surge=counts, unavailable=counts, old=counts, new=counts, data=st.data())
def test_a_step_never_leaves_the_bounds(
    replicas: int, surge: int, unavailable: int, old: int, new: int, data: st.DataObject
) -> None:
    bounds = Bounds(replicas, surge or 1, min(unavailable, replicas))
    older = replica_set("rs-1", old, data.draw(st.integers(0, old)))
    newest = replica_set("rs-2", min(new, replicas), data.draw(st.integers(0, min(new, replicas))))
    size = size_of_new(bounds, newest, [older, newest])
    assert newest["spec"]["replicas"] <= size <= replicas
    assert size + old <= max(bounds.most, newest["spec"]["replicas"] + old)
    kept = sizes_of_old(bounds, newest, [older])["rs-1"]
    assert 0 <= kept <= old
    available = older["status"]["availableReplicas"] + newest["status"]["availableReplicas"]
    lost = max(0, older["status"]["availableReplicas"] - kept)
    assert available - lost >= min(available, bounds.fewest)


def test_what_is_not_available_goes_first() -> None:
    bounds = Bounds(4, 1, 1)
    old = [replica_set("rs-1", 2, 2), replica_set("rs-2", 2, 0)]
    new = replica_set("rs-3", 1, 1)
    assert sizes_of_old(bounds, new, old) == {"rs-1": 2, "rs-2": 0}


@pytest.mark.parametrize(
    ("replicas", "sizes"),
    [(20, {"rs-1": 8, "rs-2": 14}), (5, {"rs-1": 3, "rs-2": 4}), (0, {"rs-1": 0, "rs-2": 0})],
)
def test_scaling_in_a_rollout_keeps_the_proportions(replicas: int, sizes: dict[str, int]) -> None:
    active = [replica_set("rs-1", 4, 4, most=12), replica_set("rs-2", 8, 8, most=12)]
    found = proportional(Bounds(replicas, 2, 1), active)
    assert sum(found.values()) == (replicas + 2 if replicas else 0)
    assert found == pytest.approx(sizes, abs=1)


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "web"}}, True),
        ({"matchLabels": {"app": "web", "tier": "front"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}, True),
        ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
    ],
)
def test_label_selectors(selector: dict[str, Any] | None, selected: bool) -> None:
    assert selects(selector, {"app": "web"}) is selected


def test_terms_of_a_node_affinity_are_alternatives() -> None:
    node = {"metadata": {"name": "one", "labels": {"zone": "a"}}}

    def spec(*terms: dict[str, Any]) -> dict[str, Any]:
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
        return {"affinity": {"nodeAffinity": required}}

    def zone(value: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]}

    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["one"]}]}
    assert allows(spec(zone("b"), zone("a")), node)
    assert not allows(spec(zone("b")), node)
    assert not allows(spec({}), node)
    assert allows(spec(named), node)
    assert named_nodes(spec(named)) == {"one"}
    assert named_nodes(spec(named, zone("a"))) is None
    assert named_nodes({}) is None


def test_a_pods_requests() -> None:
    init = [
        {**lab.container(cpu="500m"), "restartPolicy": "Always"},
        lab.container(cpu="2", gpu="1"),
    ]
    pod = {
        "spec": {
            "initContainers": init,
            "containers": [lab.container(cpu="1", memory="1Gi"), lab.container(cpu="250m")],
            "overhead": {"cpu": "10m"},
        }
    }
    assert pod_total(pod, "requests") == {
        "cpu": Decimal("2.51"),
        "memory": Decimal(2**30),
        "nvidia.com/gpu": Decimal(1),
    }


def test_templates_are_equal_whatever_is_empty_in_them() -> None:
    full = {"metadata": {"labels": {"app": "web"}, "creationTimestamp": None}, "spec": {"volumes": []}}
    labelled = {"metadata": {"labels": {"app": "web", "pod-template-hash": "abc"}}, "spec": {}}
    assert normalised(full) == normalised(labelled)
    assert template_hash(full) == template_hash(labelled)
    assert template_hash(full) != template_hash(full, 1)
    assert template_hash(full) != template_hash({**full, "spec": {"volumes": [{"name": "a"}]}})
