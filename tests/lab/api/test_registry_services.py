"""The addresses and node ports of Services, and the priorities of pods."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from own_api_server import new_registry

from gpuworkshop.lab.api import service_addresses
from gpuworkshop.lab.api.kinds import POD, PRIORITY_CLASS, SERVICE
from gpuworkshop.lab.api.objects import Object, copy_of, meta
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.validation.services import NODE_PORTS


@pytest.fixture
def registry() -> Registry:
    return new_registry()


def a_service(registry: Registry, name: str = "web", **spec: Any) -> Object:
    whole = {"ports": [{"port": 80}], **spec}
    return registry.create(SERVICE, {"metadata": {"name": name, "namespace": "default"}, "spec": whole})


def change(registry: Registry, name: str = "web", **spec: Any) -> Object:
    changed = registry.modify(SERVICE, "default", name, lambda service: service["spec"].update(spec))
    assert changed is not None
    return changed


def refused(match: str) -> Any:
    return pytest.raises(ApiError, match=match)


def test_every_service_has_an_address_of_its_own(registry: Registry) -> None:
    given = [a_service(registry, f"web-{n}")["spec"] for n in range(200)]
    addresses = {spec["clusterIP"] for spec in given}
    assert len(addresses) == 200
    assert all(ipaddress.ip_address(address) in service_addresses.NETWORK for address in addresses)
    assert all(spec["clusterIPs"] == [spec["clusterIP"]] for spec in given)


def test_an_address_that_is_asked_for(registry: Registry) -> None:
    assert a_service(registry, clusterIP="10.100.7.7")["spec"]["clusterIP"] == "10.100.7.7"
    with refused("provided IP is already allocated") as caught:
        a_service(registry, "other", clusterIP="10.100.7.7")
    assert caught.value.code == 422
    with refused(r"not in the valid range. The range of valid IPs is 10\.100\.0\.0/16"):
        a_service(registry, "other", clusterIP="192.168.1.1")
    with refused("must be a valid IP address"):
        a_service(registry, "other", clusterIP="first")


def test_the_addresses_own_service_does_not_count_as_another(registry: Registry) -> None:
    made = a_service(registry, clusterIP="10.100.7.7")
    assert change(registry, ports=[{"port": 81}])["spec"]["clusterIP"] == "10.100.7.7"
    registry.delete(SERVICE, "default", "web")
    assert a_service(registry, "other", clusterIP="10.100.7.7")["spec"]["clusterIP"] == "10.100.7.7"
    assert made["spec"]["clusterIP"] == "10.100.7.7"


def test_headless_and_external_services_have_none(registry: Registry) -> None:
    headless = [a_service(registry, name, clusterIP="None")["spec"]["clusterIP"] for name in ("a", "b")]
    assert headless == ["None", "None"]
    external = a_service(registry, "c", type="ExternalName", externalName="example.org")
    assert "clusterIP" not in external["spec"]
    assert change(registry, "c", type="ClusterIP", externalName=None)["spec"]["clusterIP"].startswith("10.")


def test_node_ports_are_given_kept_and_taken_back(registry: Registry) -> None:
    first = a_service(registry, type="NodePort")["spec"]["ports"][0]["nodePort"]
    second = a_service(registry, "other", type="NodePort")["spec"]["ports"][0]["nodePort"]
    assert {first, second} < set(NODE_PORTS)
    assert first != second
    # A client that sends its own manifest again does not lose the port.
    again = copy_of(registry.get(SERVICE, "default", "web"))
    again["spec"]["ports"] = [{"port": 80}]
    assert registry.update(SERVICE, again)["spec"]["ports"][0]["nodePort"] == first
    assert "nodePort" not in change(registry, type="ClusterIP")["spec"]["ports"][0]


def test_a_node_port_that_is_taken_or_out_of_range(registry: Registry) -> None:
    a_service(registry, type="NodePort", ports=[{"port": 80, "nodePort": 30080}])
    with refused(r"spec\.ports\[0\]\.nodePort: Invalid value: 30080: provided port is already allocated"):
        a_service(registry, "other", type="NodePort", ports=[{"port": 80, "nodePort": 30080}])
    with refused("The range of valid ports is 30000-32767"):
        a_service(registry, "other", type="NodePort", ports=[{"port": 80, "nodePort": 80}])
    assert change(registry, ports=[{"port": 81, "nodePort": 30080}])["spec"]["ports"][0]["port"] == 81


def test_one_port_by_two_protocols_shares_its_node_port(registry: Registry) -> None:
    ports = [{"name": protocol, "port": 53, "protocol": protocol.upper()} for protocol in ("tcp", "udp")]
    made = a_service(registry, type="LoadBalancer", ports=ports)["spec"]["ports"]
    assert made[0]["nodePort"] == made[1]["nodePort"]


def test_when_no_node_port_is_left(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_addresses, "NODE_PORTS", range(30_000, 30_001))
    a_service(registry, type="NodePort")
    with refused("range is full"):
        a_service(registry, "other", type="NodePort")


def a_pod(registry: Registry, name: str = "web", **spec: Any) -> Object:
    whole = {"containers": [{"name": "main", "image": "nginx"}], **spec}
    return registry.create(POD, {"metadata": {"name": name, "namespace": "default"}, "spec": whole})


def a_class(registry: Registry, name: str, value: int, **more: Any) -> None:
    registry.create(PRIORITY_CLASS, {"metadata": {"name": name}, "value": value, **more})


def test_a_pods_priority_is_its_classes(registry: Registry) -> None:
    a_class(registry, "high", 1000, preemptionPolicy="Never")
    spec = a_pod(registry, priorityClassName="high")["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (1000, "Never")
    system = a_pod(registry, "system", priorityClassName="system-node-critical")["spec"]
    assert system["priority"] == 2_000_001_000
    plain = a_pod(registry, "plain")["spec"]
    assert (plain["priority"], plain.get("priorityClassName")) == (0, None)
    with refused('pods "lost" is forbidden: no PriorityClass with name none was found'):
        a_pod(registry, "lost", priorityClassName="none")


def test_without_a_class_the_clusters_default_counts(registry: Registry) -> None:
    a_class(registry, "usual", 7, globalDefault=True)
    spec = a_pod(registry)["spec"]
    assert (spec["priorityClassName"], spec["priority"]) == ("usual", 7)


def test_a_priority_of_ones_own_making(registry: Registry) -> None:
    assert a_pod(registry, priority=0)["spec"]["priority"] == 0
    with refused(r"the integer value of priority \(9\) must not be provided in pod spec"):
        a_pod(registry, "own", priority=9)


def test_a_pod_keeps_its_priority_when_its_class_goes(registry: Registry) -> None:
    a_class(registry, "high", 1000)
    made = a_pod(registry, priorityClassName="high")
    registry.delete(PRIORITY_CLASS, "", "high")
    again = copy_of(made)
    del again["spec"]["priority"]
    meta(again)["labels"] = {"seen": "again"}
    assert registry.update(POD, again)["spec"]["priority"] == 1000
