"""Where a pod may run: tolerations, affinity, spreading."""

from __future__ import annotations

from gpuworkshop.lab.api.label_syntax import key_fault, value_fault
from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, pairs, text
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.metadata import labels
from gpuworkshop.lab.api.validation.selectors import label_selector, node_selector, node_selector_term

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
ALL_KEYS = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
ONLY_NO_EXECUTE = "effect must be 'NoExecute' when `tolerationSeconds` is set"
NO_VALUE = "value must be empty when `operator` is 'Exists'"
REQUIRED, PREFERRED = (f"{when}DuringSchedulingIgnoredDuringExecution" for when in ("required", "preferred"))


def scheduling(found: Findings, spec: Mapping, field: str) -> None:
    """Everything in a pod's spec that says where it may run."""
    labels(found, pairs(spec, "nodeSelector"), f"{field}.nodeSelector")
    for index, toleration in enumerate(mappings(spec, "tolerations")):
        _toleration(found, toleration, f"{field}.tolerations[{index}]")
    if affinity := mapping(spec, "affinity"):
        _node_affinity(found, mapping(affinity, "nodeAffinity"), f"{field}.affinity.nodeAffinity")
        for key in ("podAffinity", "podAntiAffinity"):
            _pod_affinity(found, mapping(affinity, key), f"{field}.affinity.{key}")
    for index, constraint in enumerate(mappings(spec, "topologySpreadConstraints")):
        _spread(found, constraint, f"{field}.topologySpreadConstraints[{index}]")


def _toleration(found: Findings, toleration: Mapping, field: str) -> None:
    key, operator = text(toleration, "key"), text(toleration, "operator")
    if key:
        found.fault(f"{field}.key", key, key_fault(key))
    elif operator != "Exists":
        found.invalid(f"{field}.operator", operator, ALL_KEYS)
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        found.invalid(f"{field}.effect", text(toleration, "effect"), ONLY_NO_EXECUTE)
    value = text(toleration, "value")
    if operator == "Exists":
        if value:
            found.invalid(f"{field}.operator", value, NO_VALUE)
    elif operator in ("", "Equal"):
        found.fault(f"{field}.operator", value, value_fault(value))
    else:
        found.unsupported(f"{field}.operator", operator, ("Equal", "Exists"))
    found.one_of(f"{field}.effect", toleration.get("effect"), EFFECTS, optional=True)


def _node_affinity(found: Findings, affinity: Mapping, field: str) -> None:
    if isinstance(selector := affinity.get(REQUIRED), dict):
        node_selector(found, selector, f"{field}.{REQUIRED}")
    for index, preference in enumerate(mappings(affinity, PREFERRED)):
        at = f"{field}.{PREFERRED}[{index}]"
        _weight(found, preference, at)
        node_selector_term(found, mapping(preference, "preference"), f"{at}.preference")


def _pod_affinity(found: Findings, affinity: Mapping, field: str) -> None:
    for index, term in enumerate(mappings(affinity, REQUIRED)):
        _pod_term(found, term, f"{field}.{REQUIRED}[{index}]")
    for index, weighted in enumerate(mappings(affinity, PREFERRED)):
        at = f"{field}.{PREFERRED}[{index}]"
        _weight(found, weighted, at)
        _pod_term(found, mapping(weighted, "podAffinityTerm"), f"{at}.podAffinityTerm")


def _pod_term(found: Findings, term: Mapping, field: str) -> None:
    label_selector(found, mapping(term, "labelSelector"), f"{field}.labelSelector")
    _topology_key(found, term, field, "can not be empty")


def _topology_key(found: Findings, term: Mapping, field: str, empty: str) -> None:
    key = text(term, "topologyKey")
    if not key:
        found.required(f"{field}.topologyKey", empty)
    else:
        found.fault(f"{field}.topologyKey", key, key_fault(key))


def _weight(found: Findings, weighted: Mapping, field: str) -> None:
    weight = weighted.get("weight", 0)
    if type(weight) is int and not 1 <= weight <= 100:
        found.invalid(f"{field}.weight", weight, "must be in the range 1-100")


def _spread(found: Findings, constraint: Mapping, field: str) -> None:
    found.at_least(f"{field}.maxSkew", constraint.get("maxSkew", 0), 1, "must be greater than zero")
    _topology_key(found, constraint, field, "can not be empty")
    found.one_of(
        f"{field}.whenUnsatisfiable",
        constraint.get("whenUnsatisfiable"),
        ("DoNotSchedule", "ScheduleAnyway"),
    )
    label_selector(found, mapping(constraint, "labelSelector"), f"{field}.labelSelector")
