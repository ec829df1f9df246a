"""Garbage collection, and namespaces that go with all that is in them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import controllers_lab as lab
import pytest

from gpuworkshop.lab.api.kinds import (
    CONFIG_MAP,
    CRD,
    DEPLOYMENT,
    NAMESPACE,
    POD,
    PRIORITY_CLASS,
    REPLICA_SET,
    SECRET,
    SERVICE_ACCOUNT,
)
from gpuworkshop.lab.api.objects import Object, condition, is_deleted, name_of, owner_reference
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.accounts import AccountController
from gpuworkshop.lab.controllers.custom_resources import CustomResourceController
from gpuworkshop.lab.controllers.deployments import DeploymentController
from gpuworkshop.lab.controllers.garbage import GarbageCollector
from gpuworkshop.lab.controllers.loop import Controller
from gpuworkshop.lab.controllers.namespaces import NamespaceController
from gpuworkshop.lab.controllers.replicasets import ReplicaSetController
from gpuworkshop.lab.controllers.scheduler import Scheduler


def rehearse(
    registry: Registry, scenario: Callable[[], Awaitable[None]], more: Sequence[Controller] = ()
) -> None:
    lab.rehearse(registry, [GarbageCollector(), NamespaceController(), *more], scenario)


def config_map(registry: Registry, name: str, *owners: Object, **metadata: Any) -> Object:
    references = [owner_reference(owner, controller=False) for owner in owners]
    body = {"name": name, "namespace": "default", **metadata}
    return registry.create(CONFIG_MAP, {"metadata": {**body, "ownerReferences": references}})


def exists(registry: Registry, name: str) -> bool:
    return registry.find(CONFIG_MAP, "default", name) is not None


def with_pods() -> tuple[Registry, list[Controller]]:
    """A Deployment, and what makes its pods."""
    registry = lab.new_registry()
    lab.add_node(registry, "one")
    registry.create(DEPLOYMENT, lab.workload("web", replicas=2))
    return registry, [DeploymentController(), ReplicaSetController(), Scheduler(), lab.KubeletStandIn()]


def running(registry: Registry) -> bool:
    return len([pod for pod in registry.list(POD) if "podIP" in (pod.get("status") or {})]) == 2


def test_in_the_background_dependents_go_after_their_owner() -> None:
    registry, controllers = with_pods()

    async def scenario() -> None:
        await lab.until(registry, lambda: running(registry))
        registry.delete(DEPLOYMENT, "default", "web")
        assert registry.find(DEPLOYMENT, "default", "web") is None
        await lab.until(registry, lambda: not registry.list(REPLICA_SET) and not registry.list(POD))

    rehearse(registry, scenario, controllers)


def test_in_the_foreground_dependents_go_first() -> None:
    registry, controllers = with_pods()
    order: list[tuple[bool, bool, bool]] = []

    async def scenario() -> None:
        await lab.until(registry, lambda: running(registry))
        registry.delete(DEPLOYMENT, "default", "web", propagation="Foreground")

        def gone() -> bool:
            kinds = (POD, REPLICA_SET, DEPLOYMENT)
            order.append(tuple(bool(registry.list(kind)) for kind in kinds))  # type: ignore[arg-type]
            return registry.find(DEPLOYMENT, "default", "web") is None

        await lab.until(registry, gone)

    rehearse(registry, scenario, controllers)
    assert order[-1] == (False, False, False)
    assert all(seen == tuple(sorted(seen)) for seen in order)  # pods, then replica sets, then the deployment


def test_orphans_stay_without_their_owner() -> None:
    registry, controllers = with_pods()

    async def scenario() -> None:
        await lab.until(registry, lambda: running(registry))
        registry.delete(DEPLOYMENT, "default", "web", propagation="Orphan")
        await lab.until(registry, lambda: registry.find(DEPLOYMENT, "default", "web") is None)
        await lab.settled(registry)

    rehearse(registry, scenario, controllers)
    (left,) = registry.list(REPLICA_SET)
    assert "ownerReferences" not in left["metadata"]
    assert len(registry.list(POD)) == 2


def test_an_object_goes_with_its_last_owner_only() -> None:
    registry = lab.new_registry()
    first, second = config_map(registry, "first"), config_map(registry, "second")
    config_map(registry, "shared", first, second)

    async def scenario() -> None:
        registry.delete(CONFIG_MAP, "default", "first")
        await lab.until(
            registry,
            lambda: (
                [
                    ref["name"]
                    for ref in registry.get(CONFIG_MAP, "default", "shared")["metadata"]["ownerReferences"]
                ]
                == ["second"]
            ),
        )
        registry.delete(CONFIG_MAP, "default", "second")
        await lab.until(registry, lambda: not exists(registry, "shared"))

    rehearse(registry, scenario)


def test_an_owner_that_never_was_is_gone() -> None:
    registry = lab.new_registry()
    owner = config_map(registry, "owner")
    registry.delete(CONFIG_MAP, "default", "owner")
    config_map(registry, "late", owner)

    async def scenario() -> None:
        await lab.until(registry, lambda: not exists(registry, "late"))

    rehearse(registry, scenario)


def test_more_dependents_than_one_look_takes() -> None:
    registry = lab.new_registry()
    owner = config_map(registry, "owner")
    for number in range(60):
        config_map(registry, f"dependent-{number}", owner)

    async def scenario() -> None:
        registry.delete(CONFIG_MAP, "default", "owner")
        await lab.until(registry, lambda: not registry.list(CONFIG_MAP))

    rehearse(registry, scenario)


def test_a_finalizer_of_another_holds_an_owner_in_the_foreground() -> None:
    registry = lab.new_registry()
    owner = config_map(registry, "owner", finalizers=["example.com/hold"])
    config_map(registry, "dependent", owner)

    async def scenario() -> None:
        registry.delete(CONFIG_MAP, "default", "owner", propagation="Foreground")
        await lab.until(registry, lambda: not exists(registry, "dependent"))
        await lab.until(
            registry,
            lambda: (
                registry.get(CONFIG_MAP, "default", "owner")["metadata"]["finalizers"] == ["example.com/hold"]
            ),
        )

    rehearse(registry, scenario)
    assert is_deleted(registry.get(CONFIG_MAP, "default", "owner"))


def own(registry: Registry, name: str, *owners: str, namespace: str = "default") -> None:
    """Have a ConfigMap owned by others, which wait for it to go."""

    def change(live: Object) -> None:
        found = [registry.get(CONFIG_MAP, namespace, owner) for owner in owners]
        live["metadata"]["ownerReferences"] = [
            {**owner_reference(owner, controller=False), "blockOwnerDeletion": True} for owner in found
        ]

    registry.modify(CONFIG_MAP, namespace, name, change)


@pytest.mark.parametrize(
    "owners",
    [
        {"a": "a"},
        {"a": "b", "b": "a"},
        {"a": "b", "b": "c", "c": "a"},
        {"a": "b", "b": "a", "c": "a"},
        {"a": "bc", "b": "a", "c": "a"},
    ],
    ids=str,
)
@pytest.mark.parametrize("deleted", ["a", "both"])
def test_a_ring_of_owners_goes_in_the_foreground(owners: dict[str, str], deleted: str) -> None:
    registry = lab.new_registry()
    for name in owners:
        config_map(registry, name)
    for name, of in owners.items():
        own(registry, name, *of)

    async def scenario() -> None:
        for name in owners if deleted == "both" else "a":
            registry.delete(CONFIG_MAP, "default", name, propagation="Foreground")
        await lab.until(registry, lambda: not registry.list(CONFIG_MAP))

    rehearse(registry, scenario)


def test_what_holds_one_of_a_ring_holds_its_owner() -> None:
    registry = lab.new_registry()
    for name in "abc":
        config_map(registry, name, finalizers=["example.com/hold"] if name == "c" else [])
    for name, of in {"a": "b", "b": "a", "c": "a"}.items():
        own(registry, name, of)

    async def scenario() -> None:
        registry.delete(CONFIG_MAP, "default", "a", propagation="Foreground")
        await lab.until(registry, lambda: is_deleted(registry.get(CONFIG_MAP, "default", "c")))
        await lab.settled(registry)
        assert exists(registry, "a"), "c is no part of the ring, and is still there"
        registry.modify(CONFIG_MAP, "default", "c", lambda live: live["metadata"].pop("finalizers"))
        await lab.until(registry, lambda: not registry.list(CONFIG_MAP))

    rehearse(registry, scenario)


def test_an_owner_in_another_namespace_is_none() -> None:
    registry = lab.new_registry()
    new_namespace(registry, "other")
    body = {"metadata": {"name": "far", "namespace": "other"}}
    far = registry.create(CONFIG_MAP, body)
    near = config_map(registry, "near")
    config_map(registry, "lost", far)
    config_map(registry, "kept", far, near)

    async def scenario() -> None:
        await lab.until(registry, lambda: not exists(registry, "lost"))
        await lab.until(
            registry,
            lambda: (
                [
                    ref["name"]
                    for ref in registry.get(CONFIG_MAP, "default", "kept")["metadata"]["ownerReferences"]
                ]
                == ["near"]
            ),
        )

    rehearse(registry, scenario)
    uid = far["metadata"]["uid"]
    said = f"ownerRef [v1/ConfigMap, namespace: default, name: far, uid: {uid}] does not exist in namespace "
    assert lab.messages(registry, "OwnerRefInvalidNamespace") == [f'{said}"default"'] * 2


def test_an_object_of_the_cluster_cannot_have_an_owner_in_a_namespace() -> None:
    registry = lab.new_registry()
    owner = config_map(registry, "owner")
    references = [owner_reference(owner, controller=False)]
    registry.create(PRIORITY_CLASS, {"metadata": {"name": "high", "ownerReferences": references}, "value": 7})

    async def scenario() -> None:
        await lab.until(registry, lambda: lab.messages(registry, "OwnerRefInvalidNamespace"))
        await lab.settled(registry)

    rehearse(registry, scenario)
    assert registry.find(PRIORITY_CLASS, "", "high") is not None


def test_such_an_object_does_not_hold_the_one_that_it_names() -> None:
    registry = lab.new_registry()
    reference = {**owner_reference(config_map(registry, "owner")), "controller": False}
    metadata = {"name": "high", "ownerReferences": [reference]}
    registry.create(PRIORITY_CLASS, {"metadata": metadata, "value": 7})

    async def scenario() -> None:
        registry.delete(CONFIG_MAP, "default", "owner", propagation="Foreground")
        await lab.until(registry, lambda: not exists(registry, "owner"))

    rehearse(registry, scenario)


def test_a_reference_of_another_name_or_kind_leads_nowhere() -> None:
    registry = lab.new_registry()
    owner = config_map(registry, "owner")
    for field, value in (("name", "else"), ("kind", "Secret")):
        metadata = {"name": field, "namespace": "default"}
        references = [{**owner_reference(owner, controller=False), field: value}]
        registry.create(CONFIG_MAP, {"metadata": {**metadata, "ownerReferences": references}})

    async def scenario() -> None:
        await lab.until(registry, lambda: not exists(registry, "name") and not exists(registry, "kind"))

    rehearse(registry, scenario)
    assert exists(registry, "owner")


def new_namespace(registry: Registry, name: str = "team") -> Object:
    body = {"metadata": {"name": name}, "spec": {"finalizers": ["kubernetes"]}}
    return registry.create(NAMESPACE, body)


def test_a_namespace_goes_with_its_contents() -> None:
    registry = lab.new_registry()
    new_namespace(registry)
    for number in range(120):
        registry.create(SECRET, {"metadata": {"name": f"secret-{number}", "namespace": "team"}})
    config_map(registry, "elsewhere")
    accounts = AccountController("PEM")

    async def scenario() -> None:
        await lab.until(registry, lambda: registry.find(SERVICE_ACCOUNT, "team", "default"))
        registry.delete(NAMESPACE, "", "team")
        assert registry.get(NAMESPACE, "", "team")["status"]["phase"] == "Terminating"
        await lab.until(registry, lambda: registry.find(NAMESPACE, "", "team") is None)

    rehearse(registry, scenario, [accounts])
    assert not any(obj["metadata"].get("namespace") == "team" for _, obj in registry.store.everything())
    assert exists(registry, "elsewhere")


def test_what_holds_a_namespace_is_told() -> None:
    registry = lab.new_registry()
    new_namespace(registry)
    held = {"name": "held", "namespace": "team", "finalizers": ["example.com/hold"]}
    registry.create(CONFIG_MAP, {"metadata": held})

    def release(live: Object) -> None:
        live["metadata"].pop("finalizers")

    async def scenario() -> None:
        registry.delete(NAMESPACE, "", "team")
        await lab.until(
            registry, lambda: condition(registry.get(NAMESPACE, "", "team"), "NamespaceContentRemaining")
        )
        namespace = registry.get(NAMESPACE, "", "team")
        remaining = condition(namespace, "NamespaceContentRemaining") or {}
        assert remaining["message"] == ("Some resources are remaining: configmaps. has 1 resource instances")
        finalizers = condition(namespace, "NamespaceFinalizersRemaining") or {}
        assert finalizers["message"] == (
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
        )
        with pytest.raises(ApiError, match="because it is being terminated"):
            registry.create(SECRET, {"metadata": {"name": "late", "namespace": "team"}})
        registry.modify(CONFIG_MAP, "team", "held", release)
        await lab.until(registry, lambda: registry.find(NAMESPACE, "", "team") is None)

    rehearse(registry, scenario)


def test_custom_resources_are_established_and_collected() -> None:
    registry = lab.new_registry()
    new_namespace(registry)
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    registry.create(CRD, {"metadata": {"name": "widgets.example.com"}, "spec": spec})

    async def scenario() -> None:
        def established() -> bool:
            found = condition(registry.get(CRD, "", "widgets.example.com"), "Established") or {}
            return found.get("status") == "True"

        await lab.until(registry, established)
        kind = registry.kinds.find("example.com", "v1", "widgets")
        assert kind is not None
        owner = registry.create(kind, {"metadata": {"name": "owner", "namespace": "team"}})
        registry.create(
            kind,
            {
                "metadata": {
                    "name": "owned",
                    "namespace": "team",
                    "ownerReferences": [owner_reference(owner)],
                }
            },
        )
        registry.delete(kind, "team", "owner")
        await lab.until(registry, lambda: registry.find(kind, "team", "owned") is None)
        registry.create(kind, {"metadata": {"name": "last", "namespace": "team"}})
        registry.delete(NAMESPACE, "", "team")
        await lab.until(registry, lambda: registry.find(NAMESPACE, "", "team") is None)
        assert [name_of(found) for found in registry.list(kind)] == []

    rehearse(registry, scenario, [CustomResourceController()])
