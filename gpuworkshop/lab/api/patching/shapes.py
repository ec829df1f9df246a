"""How each value of an object merges: by field, by item, or as one.

A Shape is made from the schema of a built-in kind, or from the openAPIV3Schema of a CRD. Both are told in
the same words here, so that the rest of this package knows of neither. Shapes of fields are made when they
are first asked for, since types may hold themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any

from gpuworkshop.lab.api.patching import fieldsv1
from gpuworkshop.lab.api.wire.schema import Field, fields_of

_META = "k8s.io.apimachinery.pkg.apis.meta.v1"
_CORE = "k8s.io.api.core.v1"
# Mappings that are one value, whoever writes them: `structType=atomic` in the API's types.
_ATOMIC = {
    f"{_META}.LabelSelector",
    f"{_META}.OwnerReference",
    *(
        f"{_CORE}.{name}"
        for name in (
            "ConfigMapKeySelector",
            "EndpointAddress",
            "EndpointPort",
            "LocalObjectReference",
            "NodeSelector",
            "NodeSelectorTerm",
            "ObjectFieldSelector",
            "ObjectReference",
            "ResourceFieldSelector",
            "SecretKeySelector",
            "SecretReference",
            "TypedLocalObjectReference",
        )
    ),
    "k8s.io.api.networking.v1.ServiceBackendPort",
    "k8s.io.api.rbac.v1.RoleRef",
    "k8s.io.api.rbac.v1.Subject",
}
# Fields that the API server's own types always have, empty if not set: their being there is nobody's doing.
_ALWAYS = {
    "metadata",
    "spec",
    "status",
    "template",
    "strategy",
    "updateStrategy",
    "containers",
    "loadBalancer",
}
_KEY_DEFAULTS = {"protocol": "TCP"}


def _no_fields() -> Mapping[str, Shape]:
    return {}


class Shape:
    """How a value merges.

    `atomic`: as one. `keys`: a list, whose items these fields tell apart; `key_defaults` are their values
    where an item has none. `is_set`: a list of scalars, each once. `patch_key` and `patch_merges` are the
    same for strategic merge patch: a list merges by that field, or by its scalars. `always`: it counts as
    there when it is empty.
    """

    def __init__(
        self,
        named: Callable[[], Mapping[str, Shape]] = _no_fields,
        item: Shape | None = None,
        *,
        atomic: bool = False,
        keys: tuple[str, ...] = (),
        key_defaults: Mapping[str, Any] | None = None,
        is_set: bool = False,
        patch_key: str = "",
        patch_merges: bool = False,
        always: bool = False,
    ) -> None:
        self._named, self.item, self.atomic, self.always = named, item, atomic, always
        self.keys, self.key_defaults, self.is_set = keys, key_defaults or {}, is_set
        self.patch_key, self.patch_merges = patch_key, patch_merges

    @cached_property
    def fields(self) -> Mapping[str, Shape]:
        """The fields that the type names."""
        return self._named()

    def child(self, name: str) -> Shape:
        """The shape of a field, or of a value in a map."""
        return self.fields.get(name) or self.item or UNKNOWN

    @property
    def items(self) -> Shape:
        """The shape of the items of a list."""
        return self.item or UNKNOWN

    @property
    def merges_items(self) -> bool:
        """Whether it is a list with items of their own."""
        return bool(self.keys or self.is_set)

    def element(self, item: Any) -> str:
        """What tells an item of this list apart, in FieldsV1. ValueError says which key it lacks."""
        if self.is_set:
            return fieldsv1.value_item(item)
        found = item if isinstance(item, dict) else {}
        keys = {key: found.get(key, self.key_defaults.get(key)) for key in self.keys}
        for key, value in keys.items():
            if value is None:
                raise ValueError(key)
        return fieldsv1.keyed_item(keys)

    def elements(self, items: Sequence[Any]) -> dict[str, list[Any]]:
        """The items by what tells them apart: by their place if nothing does, together if they share it."""
        found: dict[str, list[Any]] = {}
        for at, item in enumerate(items):
            try:
                element = self.element(item)
            except ValueError:
                element = fieldsv1.place(at)
            found.setdefault(element, []).append(item)
        return found


UNKNOWN = Shape()


def shape_of(message: str, schema: Mapping[str, Any] | None = None) -> Shape:
    """The shape of the objects of a kind: of its message, else by a CRD's schema, if there is one."""
    return _of_message(message) if message else _of_custom(schema or {})


@cache
def _of_message(message: str) -> Shape:
    return Shape(
        lambda: {name: _of_field(field) for name, field in fields_of(message).items()},
        atomic=message in _ATOMIC,
    )


def _of_field(field: Field) -> Shape:
    inner = _of_message(field.message) if field.message else UNKNOWN
    always = field.name in _ALWAYS
    if field.repeated:
        return Shape(
            item=inner,
            atomic=not (field.merge_keys or field.set),
            keys=field.merge_keys,
            key_defaults=_KEY_DEFAULTS,
            is_set=field.set,
            patch_key=field.patch_merge_key or "",
            patch_merges=field.patch_merge_primitive,
            always=always,
        )
    if field.map:
        return Shape(item=inner, atomic=field.atomic)
    return Shape(lambda: inner.fields, atomic=field.atomic or inner.atomic, always=always)


def _of_custom(schema: Mapping[str, Any]) -> Shape:
    described = _of_schema(schema)
    metadata = _of_message(f"{_META}.ObjectMeta")
    return Shape(lambda: {**described.fields, "metadata": metadata})


def _of_schema(schema: Mapping[str, Any]) -> Shape:
    """The shape by an openAPIV3Schema; lists are one value unless it says otherwise, maps are not."""
    properties, items = schema.get("properties") or {}, schema.get("items") or {}
    values = schema.get("additionalProperties")
    kind = schema.get("x-kubernetes-list-type")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if kind == "map" else ()
    keyed = items.get("properties") or {}
    return Shape(
        lambda: {name: _of_schema(inner) for name, inner in properties.items()},
        _of_schema(values) if isinstance(values, dict) else _of_schema(items) if items else None,
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        keys=keys,
        key_defaults={key: keyed[key]["default"] for key in keys if "default" in keyed.get(key, {})},
        is_set=kind == "set",
    )
