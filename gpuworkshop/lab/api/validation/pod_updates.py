"""What of a pod may change once it is there: little, since it may be running."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, text
from gpuworkshop.lab.api.validation.containers import image
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.pods import deadline
from gpuworkshop.lab.api.validation.scheduling import scheduling

ONLY_THESE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
ADDED_ONLY = "existing toleration can not be modified except its tolerationSeconds"
FREE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds")
GATED = ("schedulingGates", "nodeSelector", "affinity")


def pod_update(found: Findings, new: Object, old: Object) -> None:
    """Check a changed pod. Its binding to a node is such a change too, once."""
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    if spec == before:
        return
    for key in ("containers", "initContainers"):
        given = mappings(spec, key)
        if len(given) != len(mappings(before, key)):
            found.forbidden(f"spec.{key}", f"pod updates may not add or remove {_words(key)}")
            return
        for index, container in enumerate(given):
            image(found, text(container, "image"), f"spec.{key}[{index}].image")
    _deadline(found, spec, before)
    _tolerations(found, spec, before)
    if changed := sorted(_changed(spec, before)):
        found.forbidden("spec", "\n".join([ONLY_THESE, *(f"  changed: spec.{path}" for path in changed)]))


def _words(key: str) -> str:
    return "containers" if key == "containers" else "init containers"


def _deadline(found: Findings, spec: Mapping, before: Mapping) -> None:
    field = "spec.activeDeadlineSeconds"
    seconds, earlier = spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds")
    deadline(found, spec, "spec")
    if type(earlier) is not int:
        return
    if seconds is None:
        found.invalid(field, None, "must not update from a positive integer to nil value")
    elif type(seconds) is int and seconds > earlier:
        found.invalid(field, seconds, "must be less than or equal to previous value")


def _tolerations(found: Findings, spec: Mapping, before: Mapping) -> None:
    given = [_without_seconds(toleration) for toleration in mappings(spec, "tolerations")]
    if any(_without_seconds(toleration) not in given for toleration in mappings(before, "tolerations")):
        found.forbidden("spec.tolerations", ADDED_ONLY)
    scheduling(found, {"tolerations": spec.get("tolerations")}, "spec")


def _without_seconds(toleration: Mapping) -> Mapping:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _changed(spec: Mapping, before: Mapping) -> set[str]:
    """The fields that differ, and may not."""
    free = set(FREE)
    if not before.get("nodeName"):
        free.add("nodeName")
        if before.get("schedulingGates"):
            free.update(GATED)
    new, old = _comparable(spec), _comparable(before)
    changed = {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)} - free
    for key in changed & {"containers", "initContainers"}:
        changed.remove(key)
        for index, (one, other) in enumerate(zip(mappings(new, key), mappings(old, key), strict=True)):
            changed |= {
                f"{key}[{index}].{name}"
                for name in one.keys() | other.keys()
                if one.get(name) != other.get(name)
            }
    return changed


def _comparable(spec: Mapping) -> Mapping:
    """The spec without what may change inside containers: the images."""
    without = {
        key: [
            {name: value for name, value in entry.items() if name != "image"} for entry in mappings(spec, key)
        ]
        for key in ("containers", "initContainers")
    }
    return {**spec, **without}
