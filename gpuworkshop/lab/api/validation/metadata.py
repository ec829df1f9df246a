"""An object's metadata: names by the rule of each kind, labels, annotations, owners, finalizers."""

from __future__ import annotations

from collections.abc import Mapping

from gpuworkshop.lab.api import kinds
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.label_syntax import key_fault, value_fault
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import mapping, mappings, pairs, text, texts
from gpuworkshop.lab.api.validation import formats
from gpuworkshop.lab.api.validation.findings import Findings

ANNOTATIONS_SIZE = 256 * 1024
STANDARD_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")
UNQUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"
_PATH_SEGMENT_KINDS = (
    kinds.ROLE,
    kinds.ROLE_BINDING,
    kinds.CLUSTER_ROLE,
    kinds.CLUSTER_ROLE_BINDING,
    kinds.EVENT,
)
_NAME_RULES: Mapping[Kind, formats.Fault] = {
    kinds.NAMESPACE: formats.dns_label,
    kinds.SERVICE: formats.dns_label_1035,
    **dict.fromkeys(_PATH_SEGMENT_KINDS, formats.path_segment),
}


def metadata(found: Findings, kind: Kind, obj: Object) -> None:
    """The metadata of an object, new or changed."""
    meta = mapping(obj, "metadata")
    rule = _NAME_RULES.get(kind, formats.dns_subdomain)
    if name := text(meta, "name"):
        found.fault("metadata.name", name, rule(name))
    else:
        found.required("metadata.name", "name or generateName is required")
    if kind.namespaced:
        if namespace := text(meta, "namespace"):
            found.fault("metadata.namespace", namespace, formats.dns_label(namespace))
        else:
            found.required("metadata.namespace")
    elif text(meta, "namespace"):
        found.forbidden("metadata.namespace", "not allowed on this type")
    labels(found, pairs(meta, "labels"), "metadata.labels")
    _annotations(found, pairs(meta, "annotations"), "metadata.annotations")
    _owners(found, meta)
    _finalizers(found, kind, texts(meta, "finalizers"))


def template_metadata(found: Findings, meta: object, field: str) -> None:
    """The metadata of a template: its labels and annotations."""
    labels(found, pairs(meta, "labels"), f"{field}.labels")
    _annotations(found, pairs(meta, "annotations"), f"{field}.annotations")


def labels(found: Findings, given: Mapping[str, str], field: str) -> None:
    """Labels, or anything else with the syntax of labels."""
    for key, value in given.items():
        found.fault(field, key, key_fault(key))
        found.fault(field, value, value_fault(value))


def _annotations(found: Findings, given: Mapping[str, str], field: str) -> None:
    size = 0
    for key, value in given.items():
        found.fault(field, key, key_fault(key.lower()))
        size += len(key.encode(errors="replace")) + len(value.encode(errors="replace"))
    if size > ANNOTATIONS_SIZE:
        found.too_long(field, ANNOTATIONS_SIZE)


def _owners(found: Findings, meta: Object) -> None:
    field = "metadata.ownerReferences"
    controllers = []
    for index, owner in enumerate(mappings(meta, "ownerReferences")):
        if not text(owner, "apiVersion").rpartition("/")[2]:
            found.invalid(
                f"{field}[{index}].apiVersion", owner.get("apiVersion"), "version must not be empty"
            )
        for key in ("kind", "name", "uid"):
            if not text(owner, key):
                found.invalid(f"{field}[{index}].{key}", "", "must not be empty")
        if owner.get("controller") is True:
            controllers.append(text(owner, "name"))
    if len(controllers) > 1:
        why = (
            'Only one reference can have Controller set to true. Found "true" in references for '
            f"{controllers[0]} and {controllers[1]}"
        )
        found.invalid(field, meta.get("ownerReferences"), why)


def _finalizers(found: Findings, kind: Kind, given: list[str]) -> None:
    for index, finalizer in enumerate(given):
        if fault := key_fault(finalizer):
            found.invalid("metadata.finalizers", finalizer, fault)
        elif kind.message and "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            found.invalid(f"metadata.finalizers[{index}]", finalizer, UNQUALIFIED)
    if "orphan" in given and "foregroundDeletion" in given:
        both = "finalizer orphan and foregroundDeletion cannot be both set"
        found.invalid("metadata.finalizers", given, both)


def metadata_update(found: Findings, new: Object, old: Object) -> None:
    """What may not change in metadata; name and UID are kept by the registry."""
    before = mapping(old, "metadata")
    if before.get("deletionTimestamp"):
        known = texts(before, "finalizers")
        added = [entry for entry in texts(mapping(new, "metadata"), "finalizers") if entry not in known]
        if added:
            quoted = ", ".join(f'"{entry}"' for entry in sorted(added))
            why = (
                "no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{quoted}}}"
            )
            found.forbidden("metadata.finalizers", why)
