"""Custom resources under the schema of their CRD."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.wire import structural

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["spec", "metadata"],
    "properties": {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["size", "colour"],
            "properties": {
                "size": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3},
                "colour": {"type": "string", "enum": ["red", "blue"]},
                "share": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "multipleOf": 0.5},
                "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
                "port": {"x-kubernetes-int-or-string": True},
                "note": {"type": "string", "nullable": True, "enum": ["x"]},
                "steps": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 2,
                    "items": {
                        "type": "object",
                        "properties": {"run": {"type": "string"}, "retry": {"type": "integer", "default": 1}},
                    },
                },
                "limits": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {
                        "type": "object",
                        "properties": {"soft": {"type": "integer", "default": 5}},
                    },
                },
                "open": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
                },
                "anything": {"x-kubernetes-preserve-unknown-fields": True},
                "template": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
                },
                "choice": {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
            },
        },
    },
}


def widget(**spec: Any) -> Object:
    return {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "x", "labels": {"a": "b"}},
        "spec": {"size": 1, "colour": "red", **spec},
    }


def wrong(obj: Object, schema: dict[str, Any] = SCHEMA) -> list[tuple[str, str]]:
    return [(cause.field, cause.message) for cause in structural.validate(obj, schema)]


def test_a_good_one() -> None:
    obj = widget(
        share=0.5, name="abc", port="http", note=None, steps=[{"run": "x"}], limits={"a": {}}, choice={"a": 1}
    )
    assert wrong(obj) == []


VALUES = [
    ({"size": 0}, "size", "Invalid value: 0: spec.size in body should be greater than or equal to 1"),
    ({"size": 10}, "size", "Invalid value: 10: spec.size in body should be less than or equal to 9"),
    ({"size": "1"}, "size", 'Invalid value: "string": spec.size in body must be of type integer: "string"'),
    ({"size": None}, "size", 'Invalid value: "null": spec.size in body must be of type integer: "null"'),
    ({"colour": "green"}, "colour", 'Unsupported value: "green": supported values: "red", "blue"'),
    ({"share": 0}, "share", "Invalid value: 0: spec.share in body should be greater than 0"),
    ({"share": 0.7}, "share", "Invalid value: 0.7: spec.share in body should be a multiple of 0.5"),
    ({"name": "A1"}, "name", "Invalid value: \"A1\": spec.name in body should match '^[a-z]+$'"),
    ({"name": "a"}, "name", 'Invalid value: "a": spec.name in body should be at least 2 chars long'),
    ({"name": "abcde"}, "name", "Too long: may not be more than 4 bytes"),
    (
        {"port": []},
        "port",
        'Invalid value: "array": spec.port in body must be of type integer,string: "array"',
    ),
    ({"note": "y"}, "note", 'Unsupported value: "y": supported values: "x"'),
    ({"note": 1}, "note", 'Invalid value: "integer": spec.note in body must be of type string: "integer"'),
    ({"steps": []}, "steps", 'Invalid value: "[]": spec.steps in body should have at least 1 items'),
    ({"steps": [{}, {}, {}]}, "steps", "Too many: 3: must have at most 2 items"),
    (
        {"steps": [{}, {"run": True}]},
        "steps[1].run",
        'Invalid value: "boolean": spec.steps[1].run in body must be of type string: "boolean"',
    ),
    ({"limits": {}}, "limits", 'Invalid value: "{}": spec.limits in body should have at least 1 properties'),
]


@pytest.mark.parametrize(("spec", "field", "says"), VALUES, ids=[says for _, _, says in VALUES])
def test_values(spec: dict[str, Any], field: str, says: str) -> None:
    assert (f"spec.{field}", says) in wrong(widget(**spec))


def test_required_fields_each_on_its_own() -> None:
    assert wrong({"spec": {}}) == [("spec.colour", "Required value"), ("spec.size", "Required value")]
    assert wrong({"metadata": {}}) == [("spec", "Required value")]
    assert [cause.reason for cause in structural.validate({"spec": {}}, SCHEMA)] == ["FieldValueRequired"] * 2


def test_reasons() -> None:
    obj = widget(size="1", colour="green", name="abcde", steps=[{}, {}, {}], share=0)
    assert {cause.field: cause.reason for cause in structural.validate(obj, SCHEMA)} == {
        "spec.size": "FieldValueTypeInvalid",
        "spec.colour": "FieldValueNotSupported",
        "spec.name": "FieldValueTooLong",
        "spec.steps": "FieldValueTooMany",
        "spec.share": "FieldValueInvalid",
    }


def test_alternatives() -> None:
    ((field, says),) = wrong(widget(choice={}))
    assert field == "spec.choice"
    assert "anyOf" in says


def test_metadata_is_not_the_schemas_business() -> None:
    strange = {"properties": {"metadata": {"type": "string"}, "kind": {"enum": ["x"]}}, "required": ["kind"]}
    assert wrong(widget(), strange) == []
    assert structural.unknown_fields(
        widget(), {"type": "object", "properties": {"spec": {"type": "object"}}}
    ) == [
        'unknown field "spec.size"',
        'unknown field "spec.colour"',
    ]


@pytest.mark.parametrize("schema", [{"type": "nope"}, {"properties": 5}, {"minimum": "x"}, {"pattern": "("}])
def test_a_schema_that_is_none(schema: dict[str, Any]) -> None:
    ((field, says),) = wrong({"spec": 1}, {"properties": {"spec": schema}})
    assert field == "<nil>"
    assert says.startswith("the schema of the CustomResourceDefinition: ")


def test_references_are_never_fetched() -> None:
    assert wrong(widget(), {"properties": {"spec": {"$ref": "http://127.0.0.1:1/schema"}}}) == []


def test_the_schema_stays_as_it_is() -> None:
    before = copy.deepcopy(SCHEMA)
    structural.validate(widget(), SCHEMA)
    obj = widget(steps=[{}])
    structural.set_defaults(obj, SCHEMA)
    obj["spec"]["steps"][0]["retry"] = 7
    assert before == SCHEMA


def full() -> Object:
    obj = widget(
        sizes=1,
        steps=[{"run": "x"}, {"runs": "y"}],
        limits={"a": {"soft": 1, "hard": 2}},
        open={"other": {"deep": 1}, "known": {"a": "x", "b": "y"}},
        anything={"deep": {"x": 1}},
        template={"apiVersion": "v1", "kind": "Pod", "metadata": {"any": 1}, "spec": {"b": 1}, "x": 1},
        choice={"a": 1},
    )
    return {**obj, "foo": 1}


UNKNOWN = [
    "spec.sizes",
    "spec.steps[1].runs",
    "spec.limits.a.hard",
    "spec.open.known.b",
    "spec.template.spec.b",
    "spec.template.x",
    "spec.choice.a",
    "foo",
]


def test_unknown_fields() -> None:
    assert structural.unknown_fields(full(), SCHEMA) == [f'unknown field "{path}"' for path in UNKNOWN]


def test_pruning() -> None:
    obj = full()
    structural.prune(obj, SCHEMA)
    assert structural.unknown_fields(obj, SCHEMA) == []
    assert obj["metadata"] == full()["metadata"]
    assert obj["spec"]["anything"] == {"deep": {"x": 1}}
    assert obj["spec"]["open"] == {"other": {"deep": 1}, "known": {"a": "x"}}
    assert obj["spec"]["template"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"any": 1}, "spec": {}}
    assert "foo" not in obj


def test_nothing_is_unknown_to_an_empty_schema() -> None:
    assert structural.unknown_fields(full(), {}) == []
    opened = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert structural.unknown_fields(full(), opened) == []


def test_defaults() -> None:
    obj = widget(steps=[{"run": "x"}, {"retry": 0}], limits={"a": {}, "b": {"soft": 1}})
    del obj["spec"]["size"]
    structural.set_defaults(obj, SCHEMA)
    assert obj["spec"] == {
        "size": 3,
        "colour": "red",
        "steps": [{"run": "x", "retry": 1}, {"retry": 0}],
        "limits": {"a": {"soft": 5}, "b": {"soft": 1}},
    }


def test_default_where_null_may_not_be() -> None:
    schema = {
        "properties": {
            "a": {"type": "integer", "default": 1},
            "b": {"type": "integer", "default": 1, "nullable": True},
            "c": {"type": "object", "default": {}, "properties": {"d": {"type": "string", "default": "e"}}},
        }
    }
    obj: Object = {"a": None, "b": None}
    structural.set_defaults(obj, schema)
    assert obj == {"a": 1, "b": None, "c": {"d": "e"}}


@pytest.mark.parametrize("spec", [5, [], None, {"steps": "x"}, {"steps": [1], "limits": {"a": 2}}])
def test_objects_of_odd_shapes(spec: object) -> None:
    obj: Object = {"spec": spec}
    structural.prune(obj, SCHEMA)
    structural.set_defaults(obj, SCHEMA)
    assert wrong(obj)
