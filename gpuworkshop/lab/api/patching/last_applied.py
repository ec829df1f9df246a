"""The annotation in which `kubectl apply` keeps what it applied, and the move to server-side apply."""

from __future__ import annotations

import json

from gpuworkshop.lab.api.objects import Object, annotations_of
from gpuworkshop.lab.api.patching.comparing import compare, fields_in
from gpuworkshop.lab.api.patching.fieldsv1 import Fields, difference
from gpuworkshop.lab.api.patching.shapes import Shape

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"  # the manager of `kubectl apply --server-side`, which alone moves over without a conflict


def unchanged_fields(live: Object, shape: Shape) -> Fields:
    """The fields that are still as client-side apply set them: who applied them may go on."""
    try:
        applied = json.loads(annotations_of(live).get(ANNOTATION) or "{}")
    except ValueError:
        return {}
    if not isinstance(applied, dict):
        return {}
    changed, _ = compare(applied, live, shape)
    return difference(fields_in(applied, shape), changed)


def synchronised(live: Object, new: Object, config: Object, manager: str) -> Object:
    """`new` with the annotation telling what is applied now, if kubectl applies it and the object has one."""
    if manager != KUBECTL or ANNOTATION not in annotations_of(live):
        return new
    metadata = dict(config["metadata"])
    annotations = {
        key: text for key, text in (metadata.get("annotations") or {}).items() if key != ANNOTATION
    }
    described = {**config, "metadata": {**metadata, "annotations": annotations}}
    text = json.dumps(described, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    kept = {**annotations_of(new), ANNOTATION: text}
    return {**new, "metadata": {**new["metadata"], "annotations": kept}}
