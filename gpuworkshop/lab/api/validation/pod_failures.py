"""A Job's rules for the pods of it that fail: `podFailurePolicy`, and limits for each index."""

from __future__ import annotations

from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, sequence, text
from gpuworkshop.lab.api.validation.findings import Findings

MOST_RULES, MOST_VALUES = 20, 255
ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
FIELD = "spec.podFailurePolicy"
ONE = "specifying one of OnExitCodes and OnPodConditions is required"
NOT_BOTH = "specifying both OnExitCodes and OnPodConditions is not supported"
NAMES = "must be one of the container or initContainer names in the pod template"


def limits_per_index(found: Findings, spec: Mapping) -> None:
    """`backoffLimitPerIndex` and `maxFailedIndexes`, which belong together and to Indexed Jobs."""
    limit, most = spec.get("backoffLimitPerIndex"), spec.get("maxFailedIndexes")
    if limit is not None and spec.get("completionMode") != "Indexed":
        found.invalid("spec.backoffLimitPerIndex", limit, "requires indexed completion mode")
    if most is None:
        return
    if limit is None:
        found.required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    completions = spec.get("completions")
    if type(most) is int and type(completions) is int and most > completions:
        found.invalid("spec.maxFailedIndexes", most, "must be less than or equal to completions")


def pod_failure_policy(found: Findings, spec: Mapping) -> None:
    """The rules, and what they ask of the Job."""
    if not isinstance(spec.get("podFailurePolicy"), dict):
        return
    pod = mapping(spec, "template", "spec")
    if (policy := text(pod, "restartPolicy")) != "Never":
        words = 'only "Never" is supported when podFailurePolicy is specified'
        found.invalid("spec.template.spec.restartPolicy", policy, words)
    if (replacement := text(spec, "podReplacementPolicy")) not in ("", "Failed"):
        found.unsupported("spec.podReplacementPolicy", replacement, ("Failed",))
    names = [text(each, "name") for key in ("containers", "initContainers") for each in mappings(pod, key)]
    rules = mappings(mapping(spec, "podFailurePolicy"), "rules")
    if len(rules) > MOST_RULES:
        found.too_many(f"{FIELD}.rules", len(rules), MOST_RULES)
    for index, rule in enumerate(rules):
        _rule(found, rule, f"{FIELD}.rules[{index}]", names, spec.get("backoffLimitPerIndex") is not None)


def _rule(found: Findings, rule: Mapping, field: str, names: list[str], per_index: bool) -> None:
    action = text(rule, "action")
    found.one_of(f"{field}.action", action, ACTIONS)
    if action == "FailIndex" and not per_index:
        found.invalid(f"{field}.action", action, "requires the backoffLimitPerIndex to be set")
    codes, conditions = rule.get("onExitCodes"), mappings(rule, "onPodConditions")
    if isinstance(codes, dict):
        if conditions:
            found.invalid(field, "", NOT_BOTH)
        _exit_codes(found, codes, f"{field}.onExitCodes", names)
    elif not conditions:
        found.invalid(field, "", ONE)
    for index, condition in enumerate(conditions):
        at = f"{field}.onPodConditions[{index}]"
        if not text(condition, "type"):
            found.required(f"{at}.type")
        found.one_of(f"{at}.status", condition.get("status"), ("False", "True", "Unknown"))


def _exit_codes(found: Findings, codes: Mapping, field: str, names: list[str]) -> None:
    operator, values = text(codes, "operator"), sequence(codes, "values")
    found.one_of(f"{field}.operator", operator, ("In", "NotIn"))
    if (name := text(codes, "containerName")) and name not in names:
        found.invalid(f"{field}.containerName", name, NAMES)
    if not values:
        found.invalid(f"{field}.values", values, "at least one value is required")
    elif len(values) > MOST_VALUES:
        found.too_many(f"{field}.values", len(values), MOST_VALUES)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            found.invalid(f"{field}.values[{index}]", value, "must not be 0 for the In operator")
    found.unique((f"{field}.values[{index}]", value) for index, value in enumerate(values))
    numbers = [value for value in values if type(value) is int]
    if numbers != sorted(numbers):
        found.invalid(f"{field}.values", values, "must be ordered")
