from __future__ import annotations

import base64
from typing import Any

import pytest
from defaulted_samples import defaulted, load, named, of_cluster

from gpuworkshop.lab.api import kinds
from gpuworkshop.lab.api.defaults import keep_allocated
from gpuworkshop.lab.api.kinds import SERVICE, Kind
from gpuworkshop.lab.api.objects import Object, copy_of


def service(**spec: Any) -> Object:
    """A Service's spec, with its defaults."""
    found: Object = defaulted(SERVICE, named(spec=spec))["spec"]
    return found


def test_a_service_as_kubectl_shows_it() -> None:
    found = defaulted(SERVICE, named(spec={"selector": {"app": "x"}, "ports": [{"port": 80}]}))
    assert found["spec"] == {
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "selector": {"app": "x"},
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    assert found["status"] == {"loadBalancer": {}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"ports": [{"port": 80, "targetPort": "http"}]},
            {"ports": [{"port": 80, "targetPort": "http", "protocol": "TCP"}]},
        ),
        (
            {"ports": [{"port": 80, "targetPort": 0}]},
            {"ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}]},
        ),
        ({"type": "NodePort"}, {"externalTrafficPolicy": "Cluster"}),
        ({"externalIPs": ["10.0.0.1"]}, {"externalTrafficPolicy": "Cluster"}),
        (
            {"type": "LoadBalancer"},
            {"externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": True},
        ),
        (
            {"clusterIP": "None", "selector": {"a": "b"}},
            {"clusterIPs": ["None"], "ipFamilyPolicy": "SingleStack"},
        ),
        ({"clusterIP": "None"}, {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"}),
        ({"sessionAffinity": "ClientIP"}, {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}}),
    ],
)
def test_services_of_each_sort(spec: Object, expected: Object) -> None:
    found = service(**spec)
    assert {key: found[key] for key in expected} == expected


def test_what_a_service_does_not_have() -> None:
    external = service(type="ExternalName", externalName="example.org")
    assert not external.keys() & {"internalTrafficPolicy", "ipFamilies", "clusterIPs"}
    assert "sessionAffinityConfig" not in service(sessionAffinityConfig={"clientIP": {"timeoutSeconds": 5}})


def live_service(of_type: str = "NodePort", **port: Any) -> Object:
    """A Service that has its addresses."""
    ports = [
        {"name": "a", "port": 80, "nodePort": 30001, **port},
        {"name": "b", "port": 81, "nodePort": 30002},
    ]
    spec = {"type": of_type, "clusterIP": "10.100.0.7", "clusterIPs": ["10.100.0.7"], "ports": ports}
    return defaulted(SERVICE, named(spec=spec))


def replaced(live: Object, **spec: Any) -> Object:
    """The spec of a Service after a replacement."""
    new = defaulted(SERVICE, named(spec=spec))
    keep_allocated(SERVICE, new, live)
    found: Object = new["spec"]
    return found


def test_a_replaced_service_keeps_its_addresses_and_node_ports() -> None:
    found = replaced(
        live_service(), type="NodePort", ports=[{"name": "b", "port": 81}, {"name": "c", "port": 82}]
    )
    assert (found["clusterIP"], found["clusterIPs"]) == ("10.100.0.7", ["10.100.0.7"])
    assert [port.get("nodePort") for port in found["ports"]] == [30002, None]


def test_a_node_port_that_another_port_asks_for_is_not_kept() -> None:
    ports = [{"name": "b", "port": 81}, {"name": "c", "port": 82, "nodePort": 30002}]
    found = replaced(live_service(), type="NodePort", ports=ports)
    assert [port.get("nodePort") for port in found["ports"]] == [None, 30002]


def test_a_service_that_changes_its_type() -> None:
    live = live_service()
    unchanged = copy_of(live["spec"]) | {"type": "ClusterIP"}
    found = replaced(live, **unchanged)
    assert [port.get("nodePort") for port in found["ports"]] == [None, None]
    assert "externalTrafficPolicy" not in found
    asked = replaced(live, type="ClusterIP", ports=[{"port": 80, "nodePort": 30009}])
    assert asked["ports"][0]["nodePort"] == 30009  # to be refused, not to be lost
    external = replaced(
        live, **copy_of(live["spec"]) | {"type": "ExternalName", "externalName": "example.org"}
    )
    assert "clusterIP" not in external


def test_other_kinds_have_nothing_allotted() -> None:
    new = named(spec={})
    keep_allocated(kinds.POD, new, named(spec={"clusterIP": "10.100.0.7"}))
    assert new == named(spec={})


def test_a_secret_is_kept_encoded() -> None:
    obj = named(stringData={"password": "s3cret", "user": ""}, data={"user": "b2xk", "other": "MQ=="})
    found = defaulted(kinds.SECRET, obj)
    assert found["type"] == "Opaque"
    assert "stringData" not in found
    assert found["data"] == {"password": base64.b64encode(b"s3cret").decode(), "user": "", "other": "MQ=="}


def test_a_namespace_holds_its_own_deletion() -> None:
    found = defaulted(kinds.NAMESPACE, of_cluster("team"))
    assert found["metadata"]["labels"] == {"kubernetes.io/metadata.name": "team"}
    assert found["spec"] == {"finalizers": ["kubernetes"]}
    assert found["status"] == {"phase": "Active"}


def test_a_namespace_that_goes_is_not_held_again() -> None:
    going = of_cluster("team", spec={}, status={"phase": "Terminating"})
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    found = defaulted(kinds.NAMESPACE, going)
    assert "finalizers" not in found["spec"]
    assert found["status"] == {"phase": "Terminating"}


CASES: list[tuple[Kind, str, str]] = [
    (
        kinds.ROLE_BINDING,
        "{roleRef: {kind: Role, name: r}, subjects: [{kind: User, name: ann}, {kind: ServiceAccount, "
        "name: s}]}",
        "{roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}, subjects: [{kind: User, "
        "apiGroup: rbac.authorization.k8s.io, name: ann}, {kind: ServiceAccount, name: s}]}",
    ),
    (
        kinds.NETWORK_POLICY,
        "{spec: {podSelector: {}, egress: [{ports: [{port: 53}]}]}}",
        "{spec: {podSelector: {}, egress: [{ports: [{port: 53, protocol: TCP}]}], policyTypes: "
        "[Ingress, Egress]}}",
    ),
    (kinds.NETWORK_POLICY, "{spec: {}}", "{spec: {podSelector: {}, policyTypes: [Ingress]}}"),
    (kinds.INGRESS, "{spec: {rules: []}}", "{spec: {rules: []}, status: {loadBalancer: {}}}"),
    (kinds.PRIORITY_CLASS, "{value: 7}", "{value: 7, preemptionPolicy: PreemptLowerPriority}"),
    (
        kinds.RESOURCE_QUOTA,
        "{spec: {hard: {pods: 5, memory: 1024Mi}}}",
        "{spec: {hard: {pods: '5', memory: 1Gi}}}",
    ),
    (
        kinds.LIMIT_RANGE,
        "{spec: {limits: [{type: Container, max: {cpu: '2', memory: 2Gi}, min: {cpu: 100m}, default: "
        "{cpu: '1'}}]}}",
        "{spec: {limits: [{type: Container, max: {cpu: '2', memory: 2Gi}, min: {cpu: 100m}, "
        "default: {cpu: '1', memory: 2Gi}, defaultRequest: {cpu: '1', memory: 2Gi}}]}}",
    ),
    (
        kinds.LIMIT_RANGE,
        "{spec: {limits: [{type: Container, min: {cpu: 100m}}, {type: Pod, max: {cpu: '4'}}]}}",
        "{spec: {limits: [{type: Container, min: {cpu: 100m}, default: {}, defaultRequest: {cpu: 100m}}, "
        "{type: Pod, max: {cpu: '4'}}]}}",
    ),
    (
        kinds.ENDPOINTS,
        "{subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}]}",
        "{subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80, protocol: TCP}]}]}",
    ),
    (
        kinds.ENDPOINT_SLICE,
        "{addressType: IPv4, ports: [{port: 80}]}",
        "{addressType: IPv4, endpoints: [], ports: [{port: 80, name: '', protocol: TCP}]}",
    ),
    (
        kinds.NODE,
        "{status: {capacity: {cpu: 4, memory: 16384Mi}}}",
        "{spec: {}, status: {capacity: {cpu: '4', memory: 16Gi}, allocatable: {cpu: '4', memory: 16Gi}}}",
    ),
    (
        kinds.NODE,
        "{status: {capacity: {cpu: 4}, allocatable: {cpu: 3920m}}}",
        "{spec: {}, status: {capacity: {cpu: '4'}, allocatable: {cpu: 3920m}}}",
    ),
    (kinds.EVENT, "{reason: R}", "{reason: R, source: {}, reportingComponent: '', reportingInstance: ''}"),
    (
        kinds.CRD,
        "{spec: {group: example.org, names: {kind: Trainer, plural: trainers}}}",
        "{spec: {group: example.org, names: {kind: Trainer, plural: trainers, singular: trainer, "
        "listKind: TrainerList}, conversion: {strategy: None}}}",
    ),
    (kinds.CONFIG_MAP, "{data: {a: b}}", "{data: {a: b}}"),
]


@pytest.mark.parametrize(
    ("kind", "written", "shown"), CASES, ids=[f"{i}-{c[0].kind}" for i, c in enumerate(CASES)]
)
def test_other_kinds(kind: Kind, written: str, shown: str) -> None:
    found = defaulted(kind, named(**load(written)))
    found.pop("metadata")
    assert found == load(shown)
