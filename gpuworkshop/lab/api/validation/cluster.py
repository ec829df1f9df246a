"""Namespaces, Nodes and Events."""

from __future__ import annotations

from gpuworkshop.lab.api.label_syntax import key_fault, value_fault
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import mapping, mappings, text, texts
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.metadata import STANDARD_FINALIZERS, UNQUALIFIED
from gpuworkshop.lab.api.validation.scheduling import EFFECTS


def namespace(found: Findings, obj: Object) -> None:
    """A Namespace."""
    for index, finalizer in enumerate(texts(mapping(obj, "spec"), "finalizers")):
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            found.invalid(f"spec.finalizers[{index}]", finalizer, UNQUALIFIED)


def node(found: Findings, obj: Object) -> None:
    """A Node: its taints, of which each key and effect is there once."""
    seen = set()
    for index, taint in enumerate(mappings(mapping(obj, "spec"), "taints")):
        field = f"metadata.taints[{index}]"  # the API server's own slip
        key, value, effect = (text(taint, part) for part in ("key", "value", "effect"))
        found.fault(f"{field}.key", key, key_fault(key))
        found.fault(f"{field}.value", value, value_fault(value))
        found.one_of(f"{field}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            found.duplicate(field, taint)
        seen.add((key, effect))


def event(found: Findings, obj: Object) -> None:
    """An Event: it is in the namespace of what it is about."""
    about = text(mapping(obj, "involvedObject"), "namespace")
    own = text(mapping(obj, "metadata"), "namespace")
    if about != (own if own != "default" or about else ""):
        found.invalid("involvedObject.namespace", about, "does not match event.namespace")
