"""Tables: the very lines that kubectl prints, for every kind."""

from __future__ import annotations

from typing import Any

import pytest

from gpuworkshop.lab.api import kinds, tables
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object, timestamp
from gpuworkshop.lab.api.problems import ApiError

NOW = 1_900_000_000.0
CREATED = timestamp(NOW - 303)
TEMPLATE = {
    "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}, {"name": "log", "image": "busybox"}]}
}
SELECTOR = {"matchLabels": {"tier": "front", "app": "web"}}


def an_object(name: str = "x", **fields: Any) -> Object:
    return {"metadata": {"name": name, "creationTimestamp": CREATED}, **fields}


def lines(kind: Kind, *objects: Object, wide: bool = False) -> list[list[str]]:
    """The headings and the rows, as kubectl lays them out."""
    found = tables.table(kind, objects, NOW)
    shown = [n for n, column in enumerate(found["columnDefinitions"]) if wide or not column["priority"]]
    headings = [found["columnDefinitions"][n]["name"].upper() for n in shown]
    rows = [[str(row["cells"][n]) for n in shown] for row in found["rows"]]
    return [headings, *rows]


def line(kind: Kind, obj: Object, wide: bool = False) -> str:
    """Both lines, with single spaces between columns."""
    return "\n".join(" ".join(words) for words in lines(kind, obj, wide=wide))


POD = an_object(
    "web-1",
    spec={"containers": [{"name": "web"}], "nodeName": "n1", "readinessGates": [{"conditionType": "a/b"}]},
    status={
        "phase": "Running",
        "podIP": "127.3.1.2",
        "conditions": [{"type": "a/b", "status": "True"}],
        "containerStatuses": [
            {
                "name": "web",
                "ready": True,
                "restartCount": 3,
                "state": {"running": {}},
                "lastState": {"terminated": {"finishedAt": timestamp(NOW - 120)}},
            }
        ],
    },
)
NODE = an_object(
    "n1",
    spec={"unschedulable": True},
    status={
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "127.3.1.1"}],
        "nodeInfo": {
            "kubeletVersion": "v1.35.2-eks",
            "osImage": "Amazon Linux 2023",
            "kernelVersion": "6.1.0",
            "containerRuntimeVersion": "containerd://2.1.4",
        },
    },
)
EVENT = {
    "metadata": {"name": "web-1.17", "creationTimestamp": CREATED},
    "type": "Warning",
    "reason": "BackOff",
    "message": "Back-off restarting failed container\n",
    "involvedObject": {"kind": "Pod", "name": "web-1", "fieldPath": "spec.containers{web}"},
    "source": {"component": "kubelet", "host": "n1"},
    "firstTimestamp": timestamp(NOW - 600),
    "lastTimestamp": timestamp(NOW - 5),
    "count": 7,
}
WORKLOAD = {"template": TEMPLATE, "selector": SELECTOR}
SERVICE_SPEC = {"clusterIP": "10.100.7.8", "ports": [{"port": 80, "protocol": "TCP"}]}
ADDRESSES = [{"ip": f"127.3.{n}.2"} for n in range(1, 6)]

# What `kubectl get -o wide` prints of one object, with single spaces between columns.
PRINTED: dict[str, tuple[Kind, Object, str]] = {
    "pod": (
        kinds.POD,
        POD,
        "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES\n"
        "web-1 1/1 Running 3 (2m ago) 5m3s 127.3.1.2 n1 <none> 1/1",
    ),
    "deployment": (
        kinds.DEPLOYMENT,
        an_object(spec={**WORKLOAD, "replicas": 3}, status={"readyReplicas": 1, "updatedReplicas": 3}),
        "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR\n"
        "x 1/3 3 0 5m3s web,log nginx:1.27,busybox app=web,tier=front",
    ),
    "replica set": (
        kinds.REPLICA_SET,
        an_object(spec={**WORKLOAD, "replicas": 3}, status={"replicas": 2}),
        "NAME DESIRED CURRENT READY AGE CONTAINERS IMAGES SELECTOR\n"
        "x 3 2 0 5m3s web,log nginx:1.27,busybox app=web,tier=front",
    ),
    "stateful set": (
        kinds.STATEFUL_SET,
        an_object(spec={**WORKLOAD, "replicas": 2}, status={"readyReplicas": 2}),
        "NAME READY AGE CONTAINERS IMAGES\nx 2/2 5m3s web,log nginx:1.27,busybox",
    ),
    "daemon set": (
        kinds.DAEMON_SET,
        an_object(
            spec={**WORKLOAD, "template": {"spec": {**TEMPLATE["spec"], "nodeSelector": {"gpu": "yes"}}}},
            status={"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberReady": 2},
        ),
        "NAME DESIRED CURRENT READY UP-TO-DATE AVAILABLE NODE SELECTOR AGE CONTAINERS IMAGES SELECTOR\n"
        "x 3 3 2 0 0 gpu=yes 5m3s web,log nginx:1.27,busybox app=web,tier=front",
    ),
    "controller revision": (
        kinds.CONTROLLER_REVISION,
        {
            "metadata": {
                "name": "x-5d",
                "creationTimestamp": CREATED,
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "controller": True}
                ],
            },
            "revision": 2,
        },
        "NAME CONTROLLER REVISION AGE\nx-5d daemonset.apps/x 2 5m3s",
    ),
    "node": (
        kinds.NODE,
        NODE,
        "NAME STATUS ROLES AGE VERSION INTERNAL-IP EXTERNAL-IP OS-IMAGE KERNEL-VERSION CONTAINER-RUNTIME\n"
        "n1 Ready,SchedulingDisabled <none> 5m3s v1.35.2-eks 127.3.1.1 <none> Amazon Linux 2023 6.1.0 "
        "containerd://2.1.4",
    ),
    "namespace": (
        kinds.NAMESPACE,
        an_object(status={"phase": "Active"}),
        "NAME STATUS AGE\nx Active 5m3s",
    ),
    "service": (
        kinds.SERVICE,
        an_object(spec={**SERVICE_SPEC, "selector": {"app": "web"}, "type": "ClusterIP"}),
        "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR\n"
        "x ClusterIP 10.100.7.8 <none> 80/TCP 5m3s app=web",
    ),
    "endpoints": (
        kinds.ENDPOINTS,
        an_object(subsets=[{"addresses": ADDRESSES, "ports": [{"port": 9400}]}]),
        "NAME ENDPOINTS AGE\nx 127.3.1.2:9400,127.3.2.2:9400,127.3.3.2:9400 + 2 more... 5m3s",
    ),
    "endpoint slice": (
        kinds.ENDPOINT_SLICE,
        an_object(
            addressType="IPv4",
            ports=[{"port": 9400}, {"name": "any"}],
            endpoints=[{"addresses": ["127.3.1.2"]}, {"addresses": ["127.3.2.2"]}],
        ),
        "NAME ADDRESSTYPE PORTS ENDPOINTS AGE\nx IPv4 9400,any 127.3.1.2,127.3.2.2 5m3s",
    ),
    "ingress": (
        kinds.INGRESS,
        an_object(
            spec={"ingressClassName": "alb", "rules": [{"host": "example.org"}], "tls": [{}]},
            status={"loadBalancer": {"ingress": [{"hostname": "lb.example.org"}]}},
        ),
        "NAME CLASS HOSTS ADDRESS PORTS AGE\nx alb example.org lb.example.org 80, 443 5m3s",
    ),
    "network policy": (
        kinds.NETWORK_POLICY,
        an_object(spec={"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}),
        "NAME POD-SELECTOR AGE\nx a 5m3s",
    ),
    "config map": (
        kinds.CONFIG_MAP,
        an_object(data={"a": "1", "b": "2"}, binaryData={"c": "AA=="}),
        "NAME DATA AGE\nx 3 5m3s",
    ),
    "secret": (
        kinds.SECRET,
        an_object(type="Opaque", data={"a": "MQ=="}),
        "NAME TYPE DATA AGE\nx Opaque 1 5m3s",
    ),
    "service account": (kinds.SERVICE_ACCOUNT, an_object(), "NAME SECRETS AGE\nx 0 5m3s"),
    "event": (
        kinds.EVENT,
        EVENT,
        "LAST SEEN TYPE REASON OBJECT SUBOBJECT SOURCE MESSAGE FIRST SEEN COUNT NAME\n"
        "5s Warning BackOff pod/web-1 spec.containers{web} kubelet, n1 Back-off restarting failed container "
        "10m 7 web-1.17",
    ),
    "resource quota": (
        kinds.RESOURCE_QUOTA,
        an_object(
            status={
                "hard": {"requests.cpu": "4", "pods": "5", "limits.memory": "8Gi"},
                "used": {"requests.cpu": "500m", "pods": "1", "limits.memory": "0"},
            }
        ),
        "NAME REQUEST LIMIT AGE\nx pods: 1/5, requests.cpu: 500m/4 limits.memory: 0/8Gi 5m3s",
    ),
    "limit range": (kinds.LIMIT_RANGE, an_object(), f"NAME CREATED AT\nx {CREATED}"),
    "job": (
        kinds.JOB,
        an_object(
            spec={**WORKLOAD, "completions": 1},
            status={
                "succeeded": 1,
                "startTime": timestamp(NOW - 300),
                "completionTime": timestamp(NOW - 250),
                "conditions": [{"type": "Complete", "status": "True"}],
            },
        ),
        "NAME STATUS COMPLETIONS DURATION AGE CONTAINERS IMAGES SELECTOR\n"
        "x Complete 1/1 50s 5m3s web,log nginx:1.27,busybox app=web,tier=front",
    ),
    "pod disruption budget": (
        kinds.POD_DISRUPTION_BUDGET,
        an_object(spec={"minAvailable": "50%"}, status={"disruptionsAllowed": 1}),
        "NAME MIN AVAILABLE MAX UNAVAILABLE ALLOWED DISRUPTIONS AGE\nx 50% N/A 1 5m3s",
    ),
    "priority class": (
        kinds.PRIORITY_CLASS,
        an_object(value=1000),
        "NAME VALUE GLOBAL-DEFAULT AGE PREEMPTIONPOLICY\nx 1000 False 5m3s PreemptLowerPriority",
    ),
    "runtime class": (kinds.RUNTIME_CLASS, an_object(handler="nvidia"), "NAME HANDLER AGE\nx nvidia 5m3s"),
    "claim": (
        kinds.PERSISTENT_VOLUME_CLAIM,
        an_object(
            spec={"volumeName": "pv", "storageClassName": "gp3", "volumeMode": "Filesystem"},
            status={
                "phase": "Bound",
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            },
        ),
        "NAME STATUS VOLUME CAPACITY ACCESS MODES STORAGECLASS VOLUMEATTRIBUTESCLASS AGE VOLUMEMODE\n"
        "x Bound pv 1Gi RWO,ROX gp3 <unset> 5m3s Filesystem",
    ),
    "volume": (
        kinds.PERSISTENT_VOLUME,
        an_object(
            spec={
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": "default", "name": "data"},
                "storageClassName": "gp3",
            },
            status={"phase": "Bound"},
        ),
        "NAME CAPACITY ACCESS MODES RECLAIM POLICY STATUS CLAIM STORAGECLASS VOLUMEATTRIBUTESCLASS REASON "
        "AGE VOLUMEMODE\nx 1Gi RWX Retain Bound default/data gp3 <unset>  5m3s <unset>",
    ),
    "replication controller": (kinds.REPLICATION_CONTROLLER, an_object(), f"NAME CREATED AT\nx {CREATED}"),
    "cron job": (kinds.CRON_JOB, an_object(), f"NAME CREATED AT\nx {CREATED}"),
    "lease": (kinds.LEASE, an_object(spec={"holderIdentity": "n1"}), "NAME HOLDER AGE\nx n1 5m3s"),
    "role": (kinds.ROLE, an_object(), f"NAME CREATED AT\nx {CREATED}"),
    "cluster role": (kinds.CLUSTER_ROLE, an_object(), f"NAME CREATED AT\nx {CREATED}"),
    "role binding": (
        kinds.ROLE_BINDING,
        an_object(
            roleRef={"kind": "ClusterRole", "name": "view"},
            subjects=[
                {"kind": "User", "name": "ann"},
                {"kind": "User", "name": "bob"},
                {"kind": "Group", "name": "team"},
                {"kind": "ServiceAccount", "name": "robot", "namespace": "ops"},
            ],
        ),
        "NAME ROLE AGE USERS GROUPS SERVICEACCOUNTS\nx ClusterRole/view 5m3s ann, bob team ops/robot",
    ),
    "cluster role binding": (
        kinds.CLUSTER_ROLE_BINDING,
        an_object(roleRef={"kind": "ClusterRole", "name": "view"}),
        "NAME ROLE AGE USERS GROUPS SERVICEACCOUNTS\nx ClusterRole/view 5m3s   ",
    ),
    "custom resource definition": (
        kinds.CRD,
        an_object("waves.example.org"),
        f"NAME CREATED AT\nwaves.example.org {CREATED}",
    ),
}


@pytest.mark.parametrize(("kind", "obj", "printed"), PRINTED.values(), ids=PRINTED)
def test_every_kind(kind: Kind, obj: Object, printed: str) -> None:
    assert line(kind, obj, wide=True) == printed


def test_no_kind_is_forgotten() -> None:
    assert {kind.resource for kind, _, _ in PRINTED.values()} == {
        k.resource for k in kinds.BUILT_IN if k.stored
    }


@pytest.mark.parametrize("kind", [kind for kind in kinds.BUILT_IN if kind.stored], ids=lambda kind: kind.kind)
def test_a_bare_object_has_a_row(kind: Kind) -> None:
    bare: Object = {"metadata": {"name": "x"}, "roleRef": {}}
    headings, row = lines(kind, bare, wide=True)
    assert len(row) == len(headings)


def test_what_is_shown_without_wide() -> None:
    assert line(kinds.POD, POD) == "NAME READY STATUS RESTARTS AGE\nweb-1 1/1 Running 3 (2m ago) 5m3s"
    assert line(kinds.NODE, NODE) == (
        "NAME STATUS ROLES AGE VERSION\nn1 Ready,SchedulingDisabled <none> 5m3s v1.35.2-eks"
    )
    assert line(kinds.EVENT, EVENT) == (
        "LAST SEEN TYPE REASON OBJECT MESSAGE\n"
        "5s Warning BackOff pod/web-1 Back-off restarting failed container"
    )


@pytest.mark.parametrize(
    ("spec", "status", "external", "ports"),
    [
        ({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}, {}, "<none>", "80:30080/TCP"),
        ({"type": "LoadBalancer", "ports": [{"port": 80}]}, {}, "<pending>", "80/TCP"),
        (
            {"type": "LoadBalancer", "externalIPs": ["1.2.3.4"]},
            {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "a.example.org"}]}},
            "9.9.9.9,a.example.org,1.2.3.4",
            "<none>",
        ),
        ({"type": "ExternalName", "externalName": "example.org"}, {}, "example.org", "<none>"),
        ({"externalIPs": ["1.2.3.4", "5.6.7.8"]}, {}, "1.2.3.4,5.6.7.8", "<none>"),
        ({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}]}, {}, "<none>", "53/UDP,53/TCP"),
    ],
)
def test_services(spec: dict[str, Any], status: dict[str, Any], external: str, ports: str) -> None:
    _, row = lines(kinds.SERVICE, an_object(spec=spec, status=status))
    assert row[3:5] == [external, ports]
    assert row[2] == "<none>"


@pytest.mark.parametrize(
    ("conditions", "labels", "expected"),
    [
        ([{"type": "Ready", "status": "False"}], {}, "NotReady <none>"),
        ([{"type": "Ready", "status": "Unknown"}], {}, "NotReady <none>"),
        ([], {}, "Unknown <none>"),
        (
            [{"type": "Ready", "status": "True"}],
            {"node-role.kubernetes.io/gpu": "", "kubernetes.io/role": "worker"},
            "Ready gpu,worker",
        ),
    ],
)
def test_nodes(conditions: list[dict[str, str]], labels: dict[str, str], expected: str) -> None:
    node = an_object(status={"conditions": conditions})
    node["metadata"]["labels"] = labels
    _, row = lines(kinds.NODE, node)
    assert " ".join(row[1:3]) == expected


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({"completions": 3}, {}, "Running 0/3"),
        ({"parallelism": 3}, {"succeeded": 1}, "Running 1/1 of 3"),
        ({}, {"conditions": [{"type": "Failed", "status": "True"}]}, "Failed 0/1"),
        ({}, {"conditions": [{"type": "Suspended", "status": "True"}]}, "Suspended 0/1"),
        ({}, {"conditions": [{"type": "Suspended", "status": "False"}]}, "Running 0/1"),
    ],
)
def test_jobs(spec: dict[str, Any], status: dict[str, Any], expected: str) -> None:
    _, row = lines(kinds.JOB, an_object(spec=spec, status=status))
    assert " ".join(row[1:3]) == expected
    assert row[3] == ""


def test_a_job_that_runs_counts_its_time() -> None:
    _, row = lines(kinds.JOB, an_object(status={"startTime": timestamp(NOW - 61)}))
    assert row[3] == "61s"


def test_a_job_that_is_deleted() -> None:
    job = an_object()
    job["metadata"]["deletionTimestamp"] = CREATED
    assert lines(kinds.JOB, job)[1][1] == "Terminating"


@pytest.mark.parametrize(
    ("subsets", "expected"),
    [
        ([], "<none>"),
        ([{"notReadyAddresses": ADDRESSES}], ""),
        ([{"addresses": ADDRESSES[:2]}], "127.3.1.2,127.3.2.2"),
        (
            [{"addresses": ADDRESSES[:1], "ports": [{"port": 80}, {"port": 443}]}],
            "127.3.1.2:80,127.3.1.2:443",
        ),
        ([{"addresses": [{"ip": "fd00::2"}], "ports": [{"port": 80}]}], "[fd00::2]:80"),
    ],
)
def test_endpoints(subsets: list[dict[str, Any]], expected: str) -> None:
    assert lines(kinds.ENDPOINTS, an_object(subsets=subsets))[1][1] == expected


def test_empty_slices_and_ingresses() -> None:
    assert lines(kinds.ENDPOINT_SLICE, an_object())[1][2:4] == ["<unset>", "<unset>"]
    ingress = an_object(spec={"rules": [{"host": f"{n}.org"} for n in "abcde"]})
    ingress["metadata"]["annotations"] = {"kubernetes.io/ingress.class": "nginx"}
    assert lines(kinds.INGRESS, ingress)[1][1:5] == ["nginx", "a.org,b.org,c.org + 2 more...", "", "80"]
    assert lines(kinds.INGRESS, an_object())[1][1:3] == ["<none>", "*"]


def test_events_of_a_series() -> None:
    series = {"count": 9, "lastObservedTime": "2030-03-17T17:46:30.000000Z"}
    event = {"metadata": {"name": "e"}, "eventTime": timestamp(NOW - 60), "series": series}
    event |= {"reportingComponent": "scheduler", "involvedObject": {"kind": "Node"}}
    _, row = lines(kinds.EVENT, event, wide=True)
    assert (row[0], row[3], row[5], row[7], row[8]) == ("10s", "node", "scheduler", "60s", "9")
    del event["series"]
    assert lines(kinds.EVENT, event)[1][0] == "60s"


def test_a_selector_without_sense() -> None:
    policy = an_object(spec={"podSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}})
    assert lines(kinds.NETWORK_POLICY, policy)[1][1] == "<error>"
    assert lines(kinds.NETWORK_POLICY, an_object(spec={"podSelector": {}}))[1][1] == "<none>"


def test_the_form_of_a_table() -> None:
    found = tables.table(kinds.POD, [POD], NOW, list_meta={"resourceVersion": "7", "continue": "abc"})
    assert (found["kind"], found["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert found["metadata"] == {"resourceVersion": "7", "continue": "abc"}
    name, *_, gates = found["columnDefinitions"]
    assert (name["name"], name["type"], name["format"], name["priority"]) == ("Name", "string", "name", 0)
    assert (gates["name"], gates["priority"]) == ("Readiness Gates", 1)
    assert all(column["description"] for column in found["columnDefinitions"])
    integers = tables.table(kinds.DEPLOYMENT, [an_object()], NOW)
    by_name = {column["name"]: column["type"] for column in integers["columnDefinitions"]}
    assert (by_name["Available"], by_name["Ready"]) == ("integer", "string")
    assert integers["rows"][0]["cells"][2] == 0


def test_what_goes_with_a_row() -> None:
    def row(include: str) -> dict[str, Any]:
        found: dict[str, Any] = tables.table(kinds.POD, [POD], NOW, include_object=include)["rows"][0]
        return found

    assert row("Metadata")["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": POD["metadata"],
    }
    assert row("Object")["object"] is POD
    assert row("None")["object"] is None
    with pytest.raises(ApiError, match='unrecognized includeObject value: "All"'):
        row("All")


def test_pods_that_have_ended_say_so() -> None:
    def conditions(phase: str) -> list[tuple[str, str]]:
        row = tables.table(kinds.POD, [an_object(spec={}, status={"phase": phase})], NOW)["rows"][0]
        return [(found["type"], found["reason"]) for found in row.get("conditions", [])]

    assert conditions("Succeeded") == [("Completed", "Succeeded")]
    assert conditions("Failed") == [("Completed", "Failed")]
    assert conditions("Running") == []


def test_metadata_alone() -> None:
    found = tables.partial_list([POD, NODE], {"resourceVersion": "9"})
    assert (found["kind"], found["metadata"]) == ("PartialObjectMetadataList", {"resourceVersion": "9"})
    assert [item["metadata"]["name"] for item in found["items"]] == ["web-1", "n1"]
    assert {item["kind"] for item in found["items"]} == {"PartialObjectMetadata"}
    assert all("spec" not in item for item in found["items"])
