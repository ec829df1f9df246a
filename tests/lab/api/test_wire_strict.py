"""Types and unknown fields of an object of a known kind, in the API server's own words."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from wire_samples import objects, sent

from gpuworkshop.lab.api import kinds
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.wire import strict


def deployment(**spec: Any) -> Object:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec}


def pod(**container: Any) -> Object:
    containers = [{"name": "a", "image": "b"}, {"name": "c", **container}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": containers}}


def refusal(kind: Kind, obj: Object) -> str:
    with pytest.raises(ApiError) as caught:
        strict.check_types(kind, obj)
    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    head = f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: '
    assert caught.value.message.startswith(head)
    return caught.value.message.removeprefix(head)


@settings(max_examples=150, deadline=None)
@given(objects())
def test_what_is_right_passes(made: tuple[Kind, Object]) -> None:
    kind, obj = made
    strict.check_types(kind, obj)
    assert strict.unknown_fields(kind.message, obj) == []
    assert strict.pruned(kind.message, obj) == obj


@pytest.mark.parametrize(
    "shown", [each.shown for each in sent() if each.shown], ids=lambda shown: str(shown["kind"])
)
def test_what_kubectl_writes_passes(shown: Object) -> None:
    kind = kinds.KindTable().of(shown["apiVersion"], shown["kind"])
    assert kind is not None
    strict.check_types(kind, shown)
    assert strict.unknown_fields(kind.message, shown) == []


TYPES = [
    (deployment(replicas="two"), "string into Go struct field DeploymentSpec.spec.replicas of type int32"),
    (deployment(replicas=True), "bool into Go struct field DeploymentSpec.spec.replicas of type int32"),
    (deployment(replicas=1.5), "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
    (
        deployment(replicas=2**31),
        "number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32",
    ),
    (deployment(paused="yes"), "string into Go struct field DeploymentSpec.spec.paused of type bool"),
    (
        deployment(template=[]),
        "array into Go struct field DeploymentSpec.spec.template of type v1.PodTemplateSpec",
    ),
    (
        deployment(selector={"matchLabels": {"a": 1}}),
        "number into Go struct field LabelSelector.spec.selector.matchLabels of type string",
    ),
    (
        deployment(selector={"matchLabels": "a=1"}),
        "string into Go struct field LabelSelector.spec.selector.matchLabels of type map[string]string",
    ),
    (
        deployment(template={"spec": {"containers": {"name": "a"}}}),
        "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
    ),
    (
        deployment(template={"spec": {"containers": ["a"]}}),
        "string into Go struct field PodSpec.spec.template.spec.containers of type v1.Container",
    ),
    (
        deployment(strategy={"rollingUpdate": {"maxSurge": 1.5}}),
        "number into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge "
        "of type intstr.IntOrString",
    ),
    ({**deployment(), "spec": "x"}, "string into Go struct field Deployment.spec of type v1.DeploymentSpec"),
    ({**deployment(), "kind": 1}, "number into Go struct field Deployment.kind of type string"),
]


@pytest.mark.parametrize(("obj", "says"), TYPES, ids=[says for _, says in TYPES])
def test_wrong_types(obj: Object, says: str) -> None:
    assert refusal(kinds.DEPLOYMENT, obj) == f"json: cannot unmarshal {says}"


def test_items_of_lists_have_no_index_in_their_path() -> None:
    said = refusal(kinds.POD, pod(image=5))
    assert (
        said
        == "json: cannot unmarshal number into Go struct field Container.spec.containers.image of type string"
    )


@pytest.mark.parametrize("amount", ["1 GB", "", "one", True, "1kk", [], "1e", "--1"])
def test_quantities(amount: object) -> None:
    said = refusal(kinds.POD, pod(resources={"limits": {"memory": amount}}))
    assert (
        said == "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


@pytest.mark.parametrize("amount", ["1Gi", 2, 0.5, "100m", "1e3", "-1", ".5"])
def test_quantities_that_are_some(amount: object) -> None:
    strict.check_types(kinds.POD, pod(resources={"limits": {"memory": amount}}))


@pytest.mark.parametrize(("data", "at"), [("a b", 1), ("abc", 3), ("ä", 0), ("YQ=", 2)])
def test_data_that_is_no_base64(data: str, at: int) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"k": data}}
    assert refusal(kinds.SECRET, secret) == f"illegal base64 data at input byte {at}"


def test_data_that_is_no_text() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"k": 1}}
    assert refusal(kinds.SECRET, secret).endswith("number into Go struct field Secret.data of type []uint8")


@pytest.mark.parametrize("time", ["yesterday", "2026-12-01", "2026-13-01T00:00:00Z", "2026-12-01T00:00:00"])
def test_times(time: str) -> None:
    said = refusal(kinds.LEASE, {"metadata": {}, "spec": {"renewTime": time}})
    assert said.startswith(f'parsing time "{time}"')


@pytest.mark.parametrize("time", ["2026-12-01T00:00:00Z", "2026-12-01T00:00:00.123456+01:00"])
def test_times_that_are_some(time: str) -> None:
    strict.check_types(kinds.LEASE, {"spec": {"renewTime": time}})


def test_null_is_no_value() -> None:
    strict.check_types(
        kinds.DEPLOYMENT, deployment(replicas=None, template=None, selector={"matchLabels": None})
    )
    strict.check_types(kinds.POD, {**pod(), "metadata": {"creationTimestamp": None, "finalizers": [None]}})


def test_extra_of_a_review_is_a_list_of_texts() -> None:
    kind = kinds.SUBJECT_ACCESS_REVIEW
    strict.check_types(kind, {"spec": {"extra": {"team": ["a"]}}})
    for wrong in ("a", {"items": ["a"]}, [1]):
        said = refusal(kind, {"spec": {"extra": {"team": wrong}}})
        assert said.endswith("SubjectAccessReviewSpec.spec.extra of type v1.ExtraValue")


def test_unknown_fields_with_their_paths() -> None:
    obj = pod(imagee="x", resources={"limit": {}}, env=[{"name": "a"}, {"nam": "b"}])
    obj |= {"status": {"fase": "x"}, "foo": 1}
    obj["metadata"]["label"] = {}
    assert strict.unknown_fields(kinds.POD.message, obj) == [
        'unknown field "metadata.label"',
        'unknown field "spec.containers[1].imagee"',
        'unknown field "spec.containers[1].resources.limit"',
        'unknown field "spec.containers[1].env[1].nam"',
        'unknown field "status.fase"',
        'unknown field "foo"',
    ]


def test_names_are_case_sensitive() -> None:
    found = strict.unknown_fields(kinds.DEPLOYMENT.message, deployment(Replicas=1))
    assert found == ['unknown field "spec.Replicas"']


def test_any_key_of_a_map_is_known() -> None:
    obj = {"metadata": {"labels": {"anything": "x"}}, "data": {"file.txt": ""}}
    assert strict.unknown_fields(kinds.CONFIG_MAP.message, obj) == []


def test_rules_of_an_ingress_are_known() -> None:
    rule = {"host": "example.org", "http": {"paths": [{"path": "/", "pathTyp": "Prefix"}]}}
    found = strict.unknown_fields(kinds.INGRESS.message, {"spec": {"rules": [rule]}})
    assert found == ['unknown field "spec.rules[0].http.paths[0].pathTyp"']


def test_claim_templates_say_what_they_are() -> None:
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}}
    obj = {"spec": {"volumeClaimTemplates": [claim]}}
    assert strict.unknown_fields(kinds.STATEFUL_SET.message, obj) == []
    assert strict.pruned(kinds.STATEFUL_SET.message, obj) == obj


def test_pruning_leaves_the_object_alone() -> None:
    obj = pod(imagee="x", env=[{"name": "a", "valu": "b"}])
    before = copy.deepcopy(obj)
    found = strict.pruned(kinds.POD.message, obj)
    assert obj == before
    assert found == pod(env=[{"name": "a"}])


def test_pruning_drops_nulls() -> None:
    obj = pod(args=None, env=[{"name": "a", "value": None}], resources={"limits": None})
    obj |= {"status": None}
    obj["metadata"] |= {"creationTimestamp": None, "managedFields": [{"fieldsV1": {"f:a": None}}]}
    found = strict.pruned(kinds.POD.message, obj)
    assert found["spec"] == pod(env=[{"name": "a"}], resources={})["spec"]
    assert found["metadata"] == {"name": "x", "managedFields": [{"fieldsV1": {"f:a": None}}]}
    assert "status" not in found


def test_a_null_among_others_is_an_empty_value() -> None:
    container = {"name": "c", "args": ["a", None], "ports": [None], "resources": {"limits": {"cpu": None}}}
    obj = {"metadata": {"labels": {"a": None}}, "spec": {"containers": [container, None]}}
    found = strict.pruned(kinds.POD.message, obj)
    assert found["metadata"] == {"labels": {"a": ""}}
    first, second = found["spec"]["containers"]
    assert (first["args"], first["ports"], second) == (["a", ""], [{}], {})
    assert first["resources"] == {"limits": {"cpu": "0"}}


def test_pruning_of_what_has_a_wrong_shape() -> None:
    obj = {"spec": {"containers": "x", "nodeSelector": 5, "affinity": [], "volumes": [1]}}
    assert strict.pruned(kinds.POD.message, obj) == obj
    assert strict.unknown_fields(kinds.POD.message, obj) == []


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        (True, "bool"),
        (1, "number"),
        (0.5, "number"),
        ("", "string"),
        ([], "array"),
        ({}, "object"),
    ],
)
def test_names_of_types(value: object, name: str) -> None:
    assert strict.json_type(value) == name
