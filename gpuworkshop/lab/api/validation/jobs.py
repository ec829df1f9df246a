"""Jobs: pods that run to completion."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, mapping, text
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.pod_failures import limits_per_index, pod_failure_policy
from gpuworkshop.lab.api.validation.pods import template
from gpuworkshop.lab.api.validation.selectors import label_selector, selects
from gpuworkshop.lab.api.validation.workloads import NOT_MATCHING

NUMBERS = (
    "parallelism",
    "completions",
    "backoffLimit",
    "backoffLimitPerIndex",
    "activeDeadlineSeconds",
    "ttlSecondsAfterFinished",
    "maxFailedIndexes",
)
MOST_AT_ONCE = 100_000
NO_SUCCESS_POLICY = "the lab's Jobs know no success policy: leave it out, and all completions have to succeed"
TO_COMPLETION = ("OnFailure", "Never")
IMMUTABLE = ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "manualSelector")
WHERE = ("nodeSelector", "affinity", "tolerations", "schedulingGates")


def job(found: Findings, obj: Object) -> None:
    """A Job."""
    spec = mapping(obj, "spec")
    for key in NUMBERS:
        found.at_least(f"spec.{key}", spec.get(key), 0)
    found.one_of("spec.completionMode", spec.get("completionMode"), ("Indexed", "NonIndexed"), optional=True)
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        found.required("spec.completions", "when completion mode is Indexed")
    parallelism = spec.get("parallelism")
    if spec.get("completionMode") == "Indexed" and type(parallelism) is int and parallelism > MOST_AT_ONCE:
        words = f"must be less than or equal to {MOST_AT_ONCE} when completion mode is Indexed"
        found.invalid("spec.parallelism", parallelism, words)
    _selector(found, obj, spec)
    template(found, spec)
    policy = text(mapping(spec, "template", "spec"), "restartPolicy")
    if policy == "Always":
        words = ", ".join(f'"{name}"' for name in TO_COMPLETION)
        found.required("spec.template.spec.restartPolicy", f"valid values: {words}")
    if spec.get("successPolicy") is not None:
        found.forbidden("spec.successPolicy", NO_SUCCESS_POLICY)
    limits_per_index(found, spec)
    pod_failure_policy(found, spec)
    found.one_of(
        "spec.podReplacementPolicy",
        spec.get("podReplacementPolicy"),
        ("Failed", "TerminatingOrFailed"),
        optional=True,
    )


def _selector(found: Findings, obj: Object, spec: Mapping) -> None:
    selector = spec.get("selector")
    if not isinstance(selector, dict):
        found.required("spec.selector")
        return
    label_selector(found, selector, "spec.selector")
    labels = mapping(spec, "template", "metadata", "labels")
    if not selects(selector, labels):
        found.invalid("spec.template.metadata.labels", labels, NOT_MATCHING)
    uid = text(mapping(obj, "metadata"), "uid")
    own = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    old_own = {"matchLabels": {"controller-uid": uid}}
    if spec.get("manualSelector") is not True and selector not in (own, old_own):
        found.invalid("spec.selector", selector, "`selector` not auto-generated")


def job_update(found: Findings, new: Object, old: Object) -> None:
    """What a Job does stays; where, while it is suspended, may change."""
    spec, before = mapping(new, "spec"), mapping(old, "spec")
    for key in IMMUTABLE:
        found.unchanged(f"spec.{key}", spec.get(key), before.get(key))
    _completions(found, spec, before)
    given, earlier = mapping(spec, "template"), mapping(before, "template")
    if before.get("suspend") is True:
        if _what(given) != _what(earlier):
            found.invalid("spec.template", given, "field is immutable")
    else:
        found.unchanged("spec.template", given, earlier)


def _completions(found: Findings, spec: Mapping, before: Mapping) -> None:
    """An indexed Job may grow, if as many run at once."""
    completions = spec.get("completions")
    if completions == before.get("completions"):
        return
    if spec.get("completionMode") != "Indexed":
        found.invalid("spec.completions", completions, "field is immutable")
    elif completions != spec.get("parallelism") or before.get("completions") != before.get("parallelism"):
        words = "can only be modified in tandem with parallelism"
        found.invalid("spec.completions", completions, f"field is immutable: {words}")


def _what(given: Mapping) -> Mapping:
    spec = {key: value for key, value in mapping(given, "spec").items() if key not in WHERE}
    return {"spec": spec}
