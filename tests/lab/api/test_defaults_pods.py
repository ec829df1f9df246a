from __future__ import annotations

from typing import Any

import pytest
from defaulted_samples import defaulted, load, pod, with_container

from gpuworkshop.lab.api.defaults import admit_pod_defaults
from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.api.objects import Object


def container(**fields: Any) -> Object:
    """The only container of a pod, with its defaults."""
    found: Object = defaulted(POD, with_container(**fields))["spec"]["containers"][0]
    return found


def volume(text: str) -> Object:
    """A volume with its defaults."""
    found: Object = defaulted(POD, pod(volumes=[load(text)]))["spec"]["volumes"][0]
    return found


def test_a_pod_as_kubectl_shows_it() -> None:
    assert defaulted(POD, pod()) == {
        **pod(),
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "nginx:1.27",
                    "imagePullPolicy": "IfNotPresent",
                    "resources": {},
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                }
            ],
            "dnsPolicy": "ClusterFirst",
            "enableServiceLinks": True,
            "restartPolicy": "Always",
            "schedulerName": "default-scheduler",
            "securityContext": {},
            "terminationGracePeriodSeconds": 30,
        },
        "status": {"phase": "Pending"},
    }


def test_what_is_set_stays() -> None:
    spec = {
        "dnsPolicy": "Default",
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "schedulerName": "mine",
        "securityContext": {"runAsUser": 0},
        "terminationGracePeriodSeconds": 0,
    }
    found = defaulted(POD, pod(**spec))["spec"]
    assert {key: found[key] for key in spec} == spec


def test_a_pod_without_a_spec_gets_one_that_validation_refuses() -> None:
    assert defaulted(POD, {"metadata": {"name": "x"}})["spec"]["containers"] == []


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("registry.example.org:5000/team/nginx", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("registry.example.org:5000/nginx:1.27", "IfNotPresent"),
        ("nginx@sha256:" + "0" * 64, "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_the_pull_policy_follows_from_the_tag(image: str, policy: str) -> None:
    assert container(image=image)["imagePullPolicy"] == policy


def test_a_pull_policy_stays() -> None:
    assert container(image="nginx", imagePullPolicy="Never")["imagePullPolicy"] == "Never"


def test_requests_follow_from_limits_in_pods() -> None:
    resources = {"limits": {"nvidia.com/gpu": 1, "cpu": "2"}, "requests": {"cpu": "0.5", "memory": "1024Mi"}}
    assert container(resources=resources)["resources"] == {
        "limits": {"nvidia.com/gpu": "1", "cpu": "2"},
        "requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"},
    }


def test_quantities_are_rounded_up_to_thousandths() -> None:
    found = container(resources={"requests": {"cpu": "100.5m", "memory": "1e3", "x": "no quantity"}})
    assert found["resources"]["requests"] == {"cpu": "101m", "memory": "1e3", "x": "no quantity"}


def test_ports_probes_and_handlers() -> None:
    numbers = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    found = container(
        ports=[{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
        livenessProbe={"httpGet": {"port": 80}, "timeoutSeconds": 0},
        readinessProbe={"tcpSocket": {"port": 80}, "periodSeconds": 3},
        startupProbe={"grpc": {"port": 80}},
        lifecycle={"preStop": {"httpGet": {"port": 80, "path": "/bye"}}},
    )
    assert [port["protocol"] for port in found["ports"]] == ["TCP", "UDP"]
    assert found["livenessProbe"] == {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, **numbers}
    assert found["readinessProbe"] == {"tcpSocket": {"port": 80}, **numbers, "periodSeconds": 3}
    assert found["startupProbe"] == {"grpc": {"port": 80, "service": ""}, **numbers}
    assert found["lifecycle"]["preStop"]["httpGet"] == {"port": 80, "path": "/bye", "scheme": "HTTP"}


def test_the_environment_refers_to_fields_of_v1() -> None:
    found = container(
        env=[
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "PLAIN", "value": "1"},
        ]
    )
    assert found["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    assert found["env"][1]["valueFrom"]["resourceFieldRef"]["divisor"] == "0"
    assert found["env"][2] == {"name": "PLAIN", "value": "1"}


def test_in_the_hosts_network_ports_are_the_hosts() -> None:
    ports = [{"containerPort": 9400}, {"containerPort": 80, "hostPort": 8080}]
    spec = pod(hostNetwork=True, containers=[{"name": "c", "image": "i", "ports": ports}])
    found = defaulted(POD, spec)["spec"]["containers"][0]["ports"]
    assert [port["hostPort"] for port in found] == [9400, 8080]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{name: v}", "{name: v, emptyDir: {}}"),
        ("{name: v, secret: null}", "{name: v, secret: null, emptyDir: {}}"),
        ("{name: v, emptyDir: {sizeLimit: 1024Mi}}", "{name: v, emptyDir: {sizeLimit: 1Gi}}"),
        ("{name: v, configMap: {name: c}}", "{name: v, configMap: {name: c, defaultMode: 420}}"),
        ("{name: v, secret: {secretName: s}}", "{name: v, secret: {secretName: s, defaultMode: 420}}"),
        ("{name: v, secret: {defaultMode: 0}}", "{name: v, secret: {defaultMode: 0}}"),
        ("{name: v, hostPath: {path: /dev}}", "{name: v, hostPath: {path: /dev, type: ''}}"),
        (
            "{name: v, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}",
            "{name: v, downwardAPI: {defaultMode: 420, items: [{path: a, fieldRef: "
            "{apiVersion: v1, fieldPath: metadata.name}}]}}",
        ),
        (
            "{name: v, projected: {sources: [{serviceAccountToken: {path: token}}, {configMap: {name: c}}]}}",
            "{name: v, projected: {defaultMode: 420, sources: [{serviceAccountToken: "
            "{path: token, expirationSeconds: 3600}}, {configMap: {name: c}}]}}",
        ),
        (
            "{name: v, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 1024Mi}}}}}}",
            "{name: v, ephemeral: {volumeClaimTemplate: {spec: {volumeMode: Filesystem, resources: "
            "{requests: {storage: 1Gi}}}}}}",
        ),
        (
            "{name: v, image: {reference: a:1}}",
            "{name: v, image: {reference: a:1, pullPolicy: IfNotPresent}}",
        ),
    ],
)
def test_volumes(text: str, shown: str) -> None:
    assert volume(text) == load(shown)


@pytest.mark.parametrize("field", ["serviceAccount", "serviceAccountName"])
def test_the_account_has_two_names(field: str) -> None:
    found = defaulted(POD, pod(**{field: "robot"}))["spec"]
    assert (found["serviceAccount"], found["serviceAccountName"]) == ("robot", "robot")


def admitted(**spec: Any) -> Object:
    """A pod after admission."""
    found = defaulted(POD, pod(**spec))
    admit_pod_defaults(found)
    return found


def test_every_pod_outlives_its_node_for_five_minutes() -> None:
    assert admitted()["spec"]["tolerations"] == [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]


def test_own_tolerations_stay_and_count() -> None:
    everything = [{"operator": "Exists"}]
    assert admitted(tolerations=everything)["spec"]["tolerations"] == everything
    own = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "tolerationSeconds": 5,
        "effect": "NoExecute",
    }
    keys = [entry["key"] for entry in admitted(tolerations=[own])["spec"]["tolerations"]]
    assert keys == ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"]
    other = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert len(admitted(tolerations=other)["spec"]["tolerations"]) == 3


def test_admission_twice_is_once() -> None:
    found = admitted()
    tolerations = list(found["spec"]["tolerations"])
    admit_pod_defaults(found)
    assert found["spec"]["tolerations"] == tolerations


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ({}, "BestEffort"),
        ({"limits": {"nvidia.com/gpu": 1}}, "BestEffort"),
        ({"requests": {"cpu": 0}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable"),
    ],
)
def test_quality_of_service(resources: Object, quality: str) -> None:
    found = defaulted(POD, with_container(resources=resources))
    admit_pod_defaults(found)
    assert found["status"]["qosClass"] == quality
