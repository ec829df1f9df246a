"""Defaults and validation never fail, however odd the object: its types are another's business."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from defaulted_samples import named
from hypothesis import given, note, settings
from hypothesis import strategies as st

from gpuworkshop.lab.api.defaults import admit_pod_defaults, keep_allocated, set_defaults
from gpuworkshop.lab.api.kinds import BUILT_IN, Kind
from gpuworkshop.lab.api.validation import validate_create, validate_update

# The words of the API, so that what is made up hits on the fields that are looked at.
FIELDS = """
    metadata name namespace labels annotations finalizers ownerReferences deletionTimestamp uid spec
    status type containers initContainers volumes image ports env envFrom valueFrom fieldRef
    configMapKeyRef volumeMounts mountPath resources limits requests cpu nvidia.com/gpu livenessProbe
    httpGet exec tcpSocket lifecycle preStop securityContext tolerations key operator effect value values
    affinity nodeAffinity podAffinity requiredDuringSchedulingIgnoredDuringExecution
    preferredDuringSchedulingIgnoredDuringExecution nodeSelectorTerms matchExpressions matchFields
    labelSelector matchLabels topologySpreadConstraints template selector replicas strategy updateStrategy
    rollingUpdate maxSurge maxUnavailable partition completions parallelism suspend clusterIP clusterIPs
    port nodePort targetPort protocol sessionAffinity externalName data binaryData stringData immutable
    rules verbs roleRef subjects kind apiGroup hard max min default group names plural versions schema
    openAPIV3Schema storage scope taints subsets addresses endpoints addressType ip policyTypes ingress
    egress from to ipBlock cidr podSelector http paths backend service defaultBackend host configMap
    secret projected sources downwardAPI items emptyDir sizeLimit hostPath path defaultMode
    volumeClaimTemplates involvedObject capacity allocatable handler activeDeadlineSeconds hostNetwork
    hostPort
""".split()  # noqa: SIM905  more readable so
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.sampled_from(
        ["Always", "RollingUpdate", "ClientIP", "None", "In", "Exists", "Container", "1Gi", "10%", "1", "e"]
    ),
    st.sampled_from(["NodePort", "ExternalName", "LoadBalancer", "kubernetes.io/tls", "system-x", "Indexed"]),
)
KEYS = st.one_of(st.sampled_from(FIELDS), st.text(max_size=3))
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=25,
)
OBJECTS = st.dictionaries(st.one_of(st.sampled_from(["metadata", "spec", "status"]), KEYS), JSON, max_size=8)


def through(kind: Kind, obj: Any, old: Any) -> None:
    """Put an object through everything that the registry puts it through."""
    for found in (obj, old):
        set_defaults(kind, found)
        once = copy.deepcopy(found)
        set_defaults(kind, found)
        assert found == once
    keep_allocated(kind, obj, old)
    for cause in (*validate_create(kind, obj), *validate_update(kind, obj, old)):
        assert cause.reason.startswith("FieldValue")
        assert cause.message
    json.dumps(obj)


@settings(max_examples=80, deadline=None)
@given(obj=OBJECTS, old=OBJECTS)
def test_anything_goes_through(obj: dict[str, Any], old: dict[str, Any]) -> None:
    for kind in BUILT_IN:
        if kind.stored:
            note(kind.kind)
            through(kind, copy.deepcopy(obj), copy.deepcopy(old))


@settings(max_examples=60, deadline=None)
@given(pod=OBJECTS)
def test_anything_is_admitted(pod: dict[str, Any]) -> None:
    admit_pod_defaults(pod)
    once = copy.deepcopy(pod)
    admit_pod_defaults(pod)
    assert pod == once


def spoiled(value: Any, by: Any) -> list[Any]:
    """Copies of a value, in each of which one part of it is another."""
    if isinstance(value, dict):
        keys = list(value)
        return [by] + [{**value, key: part} for key in keys for part in spoiled(value[key], by)]
    if isinstance(value, list):
        at = range(len(value))
        return [by] + [[*value[:i], part, *value[i + 1 :]] for i in at for part in spoiled(value[i], by)]
    return [by]


SPEC: dict[str, Any] = {
    "selector": {
        "matchLabels": {"app": "x"},
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
    },
    "template": {
        "metadata": {"labels": {"app": "x"}},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "nginx",
                    "ports": [{"containerPort": 80, "hostPort": 80}],
                    "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"key": "a"}}}],
                    "resources": {"limits": {"cpu": 1}, "requests": {"cpu": 1}},
                    "livenessProbe": {"httpGet": {"port": 80}},
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                }
            ],
            "volumes": [
                {"name": "v", "projected": {"sources": [{"downwardAPI": {"items": [{"path": "a"}]}}]}}
            ],
            "tolerations": [{"key": "a", "operator": "Exists"}],
        },
    },
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "0%"}},
    "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "0%"}},
    "completions": 1,
    "parallelism": 1,
}


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "StatefulSet", "Job", "Pod"])
@pytest.mark.parametrize("by", [None, "", 7, -1, 2.5, True, [], [None], {}, {"a": None}], ids=repr)
def test_each_part_may_be_of_any_type(kind: str, by: Any) -> None:
    (of_kind,) = (found for found in BUILT_IN if found.kind == kind)
    sound = SPEC["template"]["spec"] if kind == "Pod" else SPEC
    for spec in spoiled(sound, by):
        through(of_kind, copy.deepcopy(named(spec=spec)), copy.deepcopy(named(spec=sound)))
