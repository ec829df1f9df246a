"""The table of fields: that it agrees with the Python client's models, and with itself."""

from __future__ import annotations

from importlib.resources import files
from itertools import chain

import kubernetes.client
import pytest
from wire_samples import TYPED

from gpuworkshop.lab.api.wire import schema
from gpuworkshop.lab.api.wire.schema import Field, fields_of

CORE, META = "k8s.io.api.core.v1", "k8s.io.apimachinery.pkg.apis.meta.v1"
# Go's embedded structs, which the client writes into their parents.
EMBEDDED = {
    "EphemeralContainerCommon",
    "IngressRuleValue",
    "PersistentVolumeSource",
    "ProbeHandler",
    "VolumeSource",
}


def field(message: str, name: str) -> Field:
    return fields_of(message)[name]


def test_table_is_compact() -> None:
    assert len(files("gpuworkshop.lab.api.wire").joinpath("schema.json").read_bytes()) < 60_000
    assert len(schema.messages()) > 250


@pytest.mark.parametrize("kind", TYPED, ids=lambda kind: kind.kind)
def test_every_kind_has_its_fields(kind: object) -> None:
    assert "metadata" in fields_of(kind.message)  # type: ignore[attr-defined]


def test_every_type_that_a_field_names_is_known() -> None:
    scalars = {"string", "bool", "int32", "int64", "bytes"}
    used = {found.type for message in schema.messages() for found in fields_of(message).values()}
    assert used <= scalars | set(schema.messages())
    assert used >= schema.SPECIAL


def model_of(message: str) -> type | None:
    """The client's model of a message; of the core's where several groups have one of that name."""
    group, _, last = message.removeprefix("k8s.io.api.").partition(".v1.")
    for prefix in (group.capitalize(), ""):
        if (found := getattr(kubernetes.client, f"{prefix}V1{last}", None)) is not None:
            return found  # type: ignore[no-any-return]
    return None


def test_names_and_containers_are_those_of_the_python_client() -> None:
    compared = 0
    for message in set(schema.messages()) - schema.SPECIAL:
        model = model_of(message)
        if model is None:
            assert message.rsplit(".", 1)[-1] in EMBEDDED
            continue
        names, types = model.attribute_map, model.openapi_types  # type: ignore[attr-defined]
        known = {written: types[name] for name, written in names.items()}
        for name, found in fields_of(message).items():
            assert name in known, (message, name)
            container = "List[" if found.repeated else "Dict[" if found.map else ""
            assert known[name].startswith(container or known[name]), (message, name, known[name])
            if not container:
                assert not known[name].startswith(("Dict[", "List[")), (message, name)
            compared += 1
    assert compared > 900


def test_field_numbers_of_a_message_differ() -> None:
    for message in schema.messages():
        numbers = [found.number for found in schema.wire_fields(message)]
        assert len(set(numbers)) == len(numbers), message


def test_merge_keys_are_fields_of_the_items() -> None:
    merged = [
        found for message in schema.messages() for found in fields_of(message).values() if found.merge_keys
    ]
    assert len(merged) > 30
    for found in merged:
        assert found.repeated
        assert not found.atomic
        keys = chain(found.merge_keys, [found.patch_merge_key] if found.patch_merge_key else ())
        assert set(keys) <= fields_of(found.message).keys(), found


def test_every_list_says_how_it_merges() -> None:
    for message in schema.messages():
        for found in fields_of(message).values():
            ways = [bool(found.merge_keys), found.set, found.atomic]
            assert sum(ways) == (1 if found.repeated else found.atomic), (message, found)


def test_two_kinds_of_patch_merge_by_different_keys() -> None:
    ports = field(f"{CORE}.Container", "ports")
    assert (ports.merge_keys, ports.patch_merge_key) == (("containerPort", "protocol"), "containerPort")
    ports = field(f"{CORE}.ServiceSpec", "ports")
    assert (ports.merge_keys, ports.patch_merge_key) == (("port", "protocol"), "port")
    volumes = field(f"{CORE}.PodSpec", "volumes")
    assert (volumes.merge_keys, volumes.patch_merge_key, volumes.patch_retain_keys) == (
        ("name",),
        "name",
        True,
    )
    finalizers = field(f"{META}.ObjectMeta", "finalizers")
    assert (finalizers.set, finalizers.patch_merge_primitive, finalizers.patch_merge_key) == (
        True,
        True,
        None,
    )


@pytest.mark.parametrize(
    ("message", "name"),
    [("PodSpec", "tolerations"), ("Container", "args"), ("Endpoints", "subsets"), ("NodeSpec", "taints")],
)
def test_other_lists_are_one_value(message: str, name: str) -> None:
    found = field(f"{CORE}.{message}", name)
    assert found.atomic
    assert found.patch_merge_key is None


def test_embedded_structs_stand_in_their_parents() -> None:
    assert field(f"{CORE}.Volume", "configMap").message == f"{CORE}.ConfigMapVolumeSource"
    assert field(f"{CORE}.ConfigMapVolumeSource", "name").type == "string"
    assert field(f"{CORE}.Probe", "httpGet").message == f"{CORE}.HTTPGetAction"
    assert field(f"{CORE}.EphemeralContainer", "env").merge_keys == ("name",)
    assert "http" in fields_of("k8s.io.api.networking.v1.IngressRule")
    assert "ingressRuleValue" not in fields_of("k8s.io.api.networking.v1.IngressRule")


def test_fields_of_json_only_are_not_on_the_wire() -> None:
    claim = f"{CORE}.PersistentVolumeClaim"
    assert field(claim, "kind").number == 0
    assert "kind" not in {found.name for found in schema.wire_fields(claim)}


def test_unknown_message_has_no_fields() -> None:
    assert fields_of("k8s.io.api.core.v1.Nothing") == {}
