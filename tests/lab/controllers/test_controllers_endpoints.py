"""Endpoints and EndpointSlices: what proxies and Prometheus's discovery read."""

from __future__ import annotations

from typing import Any

import controllers_lab as lab

from gpuworkshop.lab.api.kinds import ENDPOINT_SLICE, ENDPOINTS, NODE, POD, SERVICE
from gpuworkshop.lab.api.objects import Object, labels_of, name_of, uid_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.endpoints import EndpointsController, EndpointSliceController

KEY = ("default", "web")


def service(registry: Registry, **spec: Any) -> Object:
    metadata = {"name": "web", "namespace": "default", "labels": {"team": "red"}}
    body = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], **spec}
    return registry.create(SERVICE, {"metadata": metadata, "spec": body})


def running(registry: Registry, name: str, address: str, *, ready: bool = True, **spec: Any) -> Object:
    if registry.find(NODE, "", "one") is None:
        lab.add_node(registry, "one", labels={"topology.kubernetes.io/zone": "eu-west-1a"})
    created = registry.create(POD, lab.pod(name, {"app": "web"}, nodeName="one", **spec))
    lab.run(registry, created, ready=ready, address=address)
    return registry.get(POD, "default", name)


def look(registry: Registry) -> None:
    EndpointsController().reconcile(registry, KEY)
    EndpointSliceController().reconcile(registry, KEY)


def subsets(registry: Registry) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = registry.get(ENDPOINTS, *KEY).get("subsets") or []
    return found


def slices(registry: Registry) -> list[Object]:
    return registry.list(ENDPOINT_SLICE)


def test_a_ready_pod_is_an_address() -> None:
    registry = lab.new_registry()
    owner = service(registry)
    pod = running(registry, "a", "127.1.0.9")
    look(registry)
    reference = {"kind": "Pod", "name": "a", "namespace": "default", "uid": uid_of(pod)}
    (subset,) = subsets(registry)
    assert subset["addresses"] == [{"ip": "127.1.0.9", "nodeName": "one", "targetRef": reference}]
    assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    (found,) = slices(registry)
    assert name_of(found).startswith("web-")
    assert labels_of(found) == {
        "team": "red",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert found["metadata"]["ownerReferences"][0]["uid"] == uid_of(owner)
    (endpoint,) = found["endpoints"]
    assert endpoint["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert (endpoint["nodeName"], endpoint["zone"]) == ("one", "eu-west-1a")
    assert endpoint["targetRef"] == reference


def test_a_pod_that_is_not_ready_is_listed_apart_or_published_anyway() -> None:
    registry = lab.new_registry()
    service(registry)
    running(registry, "a", "127.1.0.9", ready=False)
    look(registry)
    assert list(subsets(registry)[0]) == ["notReadyAddresses", "ports"]
    assert slices(registry)[0]["endpoints"][0]["conditions"]["ready"] is False
    lab.modify(registry, SERVICE, "web", publishNotReadyAddresses=True)
    look(registry)
    assert list(subsets(registry)[0]) == ["addresses", "ports"]
    assert slices(registry)[0]["endpoints"][0]["conditions"]["ready"] is True


def test_a_named_port_is_looked_up_in_each_pod() -> None:
    registry = lab.new_registry()
    service(registry, ports=[{"name": "metrics", "port": 9400, "targetPort": "metrics"}])
    for name, number in (("a", 9400), ("b", 9401)):
        ports = [{"name": "metrics", "containerPort": number}]
        running(registry, name, f"127.1.0.{number - 9390}", containers=[{**lab.container(), "ports": ports}])
    running(registry, "c", "127.1.0.30")
    look(registry)
    found = {
        subset["ports"][0]["port"] if "ports" in subset else None: subset["addresses"][0]["ip"]
        for subset in subsets(registry)
    }
    assert found == {9400: "127.1.0.10", 9401: "127.1.0.11", None: "127.1.0.30"}
    assert len(slices(registry)) == 3


def test_pods_that_have_ended_go_and_come_without_an_address() -> None:
    registry = lab.new_registry()
    service(registry)
    running(registry, "a", "127.1.0.9")
    look(registry)
    lab.finish(registry, "a", "Succeeded")
    registry.create(POD, lab.pod("b", {"app": "web"}))
    look(registry)
    assert subsets(registry) == []
    assert slices(registry)[0]["endpoints"] == []


def test_a_terminating_pod_serves_but_is_not_ready() -> None:
    registry = lab.new_registry()
    service(registry)
    running(registry, "a", "127.1.0.9")
    registry.delete(POD, "default", "a")
    look(registry)
    assert subsets(registry) == []
    conditions = slices(registry)[0]["endpoints"][0]["conditions"]
    assert conditions == {"ready": False, "serving": True, "terminating": True}


def test_a_headless_service_says_so_and_gives_names() -> None:
    registry = lab.new_registry()
    service(registry, clusterIP="None")
    running(registry, "web-0", "127.1.0.9", hostname="web-0", subdomain="web")
    look(registry)
    assert subsets(registry)[0]["addresses"][0]["hostname"] == "web-0"
    assert labels_of(registry.get(ENDPOINTS, *KEY))["service.kubernetes.io/headless"] == ""
    assert slices(registry)[0]["endpoints"][0]["hostname"] == "web-0"


def test_a_service_without_a_selector_is_left_to_its_author() -> None:
    registry = lab.new_registry()
    lab.modify(registry, SERVICE, name_of(service(registry)), selector={})
    look(registry)
    assert registry.find(ENDPOINTS, *KEY) is None
    assert slices(registry) == []


def test_more_than_a_hundred_endpoints_take_several_slices() -> None:
    registry = lab.new_registry()
    service(registry)
    for number in range(150):
        running(registry, f"web-{number}", f"127.1.0.{number + 2}")
    look(registry)
    assert sorted(len(found["endpoints"]) for found in slices(registry)) == [50, 100]
    (full,) = (found for found in slices(registry) if len(found["endpoints"]) == 100)
    first, *others = [each["targetRef"]["name"] for each in full["endpoints"]]
    registry.delete(POD, "default", first, grace_period=0)
    untouched = {name_of(found): found for found in slices(registry) if found is not full}
    look(registry)
    assert all(registry.get(ENDPOINT_SLICE, "default", name) is found for name, found in untouched.items())
    for name in others:
        registry.delete(POD, "default", name, grace_period=0)
    look(registry)
    assert {name_of(found): found for found in slices(registry)} == untouched
    before = registry.store.revision
    look(registry)
    assert registry.store.revision == before


def test_they_follow_pods_and_go_with_the_service() -> None:
    registry = lab.new_registry()
    service(registry)

    async def scenario() -> None:
        pod = running(registry, "a", "127.1.0.9")
        await lab.until(registry, lambda: registry.find(ENDPOINTS, *KEY) and subsets(registry))

        def relabel(live: Object) -> None:
            live["metadata"]["labels"] = {"app": "other"}

        registry.modify(POD, "default", name_of(pod), relabel)
        await lab.until(registry, lambda: not subsets(registry))
        registry.delete(SERVICE, *KEY)
        await lab.until(registry, lambda: registry.find(ENDPOINTS, *KEY) is None)

    lab.rehearse(registry, [EndpointsController(), EndpointSliceController()], scenario)
