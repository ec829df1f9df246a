"""CustomResourceDefinitions: names, versions, and that each has a schema."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, text, texts
from gpuworkshop.lab.api.validation import formats
from gpuworkshop.lab.api.validation.findings import Findings

NAME = 'must be spec.names.plural+"."+spec.group'
ONE_STORED = "must have exactly one version marked as storage version"
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")


def custom_resource_definition(found: Findings, obj: Object) -> None:
    """A CustomResourceDefinition."""
    spec, name = mapping(obj, "spec"), text(mapping(obj, "metadata"), "name")
    names, group = mapping(spec, "names"), text(spec, "group")
    if name and name != f"{text(names, 'plural')}.{group}":
        found.invalid("metadata.name", name, NAME)
    if not group:
        found.required("spec.group")
    elif fault := formats.dns_subdomain(group):
        found.invalid("spec.group", group, fault)
    elif "." not in group:
        found.invalid("spec.group", group, "should be a domain with at least one dot")
    if (scope := text(spec, "scope")) not in ("Cluster", "Namespaced"):
        found.unsupported("spec.scope", scope, ("Cluster", "Namespaced"))
    _names(found, names)
    _versions(found, spec)


def _names(found: Findings, names: Mapping) -> None:
    for key in ("plural", "singular", "kind", "listKind"):
        field, name = f"spec.names.{key}", text(names, key)
        if not name:
            found.required(field)
        else:
            found.fault(field, name, formats.dns_label_1035(name.lower()))
    for key in ("shortNames", "categories"):
        for index, name in enumerate(texts(names, key)):
            found.fault(f"spec.names.{key}[{index}]", name, formats.dns_label_1035(name))
    if text(names, "kind") and text(names, "kind") == text(names, "listKind"):
        found.invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _versions(found: Findings, spec: Mapping) -> None:
    versions = mappings(spec, "versions")
    for index, version in enumerate(versions):
        _version(found, version, f"spec.versions[{index}]")
    named = [text(version, "name") for version in versions]
    if len(set(named)) != len(named):
        found.invalid("spec.versions", named, "must contain unique version names")
    if sum(version.get("storage") is True for version in versions) != 1:
        found.invalid("spec.versions", named, ONE_STORED)


def _version(found: Findings, version: Mapping, field: str) -> None:
    name = text(version, "name")
    found.fault(f"{field}.name", name, formats.dns_label_1035(name))
    at = f"{field}.schema.openAPIV3Schema"
    schema = mapping(version, "schema").get("openAPIV3Schema")
    if not isinstance(schema, dict):
        found.required(at, "schemas are required")
    elif not schema.get("type"):
        found.required(f"{at}.type", "must not be empty at the root")
    elif schema["type"] != "object":
        found.invalid(f"{at}.type", schema["type"], "must be object at the root")
    for index, column in enumerate(mappings(version, "additionalPrinterColumns")):
        column_field = f"{field}.additionalPrinterColumns[{index}]"
        for key in ("name", "jsonPath"):
            if not text(column, key):
                found.required(f"{column_field}.{key}")
        found.one_of(f"{column_field}.type", column.get("type"), COLUMN_TYPES)


def custom_resource_definition_update(found: Findings, new: Object, old: Object) -> None:
    """What is served under stays, since objects of the kind may be there."""
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    for key in ("group", "scope"):
        found.unchanged(f"spec.{key}", spec.get(key), before.get(key))
    for key in ("kind", "plural"):
        names, earlier = mapping(spec, "names"), mapping(before, "names")
        found.unchanged(f"spec.names.{key}", names.get(key), earlier.get(key))
