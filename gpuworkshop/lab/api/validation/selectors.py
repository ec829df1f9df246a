"""Selectors inside objects: of labels, and of nodes."""

from __future__ import annotations

from gpuworkshop.lab.api.label_syntax import key_fault, value_fault
from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, pairs, sequence, text, texts
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.metadata import labels

NEEDS_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
NEEDS_NONE = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
NEEDS_ONE = "must be specified single value when `operator` is 'Lt' or 'Gt'"


def label_selector(found: Findings, selector: Mapping, field: str) -> None:
    """A LabelSelector."""
    labels(found, pairs(selector, "matchLabels"), f"{field}.matchLabels")
    for index, expression in enumerate(mappings(selector, "matchExpressions")):
        at = f"{field}.matchExpressions[{index}]"
        _expression(found, expression, at, comparing=False)
        for position, value in enumerate(texts(expression, "values")):
            found.fault(f"{at}.values[{position}]", value, value_fault(value))


def node_selector(found: Findings, selector: Mapping, field: str) -> None:
    """A NodeSelector: terms, of which one has to match."""
    terms = mappings(selector, "nodeSelectorTerms")
    if not terms:
        found.required(f"{field}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        node_selector_term(found, term, f"{field}.nodeSelectorTerms[{index}]")


def node_selector_term(found: Findings, term: Mapping, field: str) -> None:
    """One term of a NodeSelector."""
    for index, expression in enumerate(mappings(term, "matchExpressions")):
        _expression(found, expression, f"{field}.matchExpressions[{index}]", comparing=True)
    for index, expression in enumerate(mappings(term, "matchFields")):
        at = f"{field}.matchFields[{index}]"
        if expression.get("key") != "metadata.name":
            found.invalid(f"{at}.key", expression.get("key"), "not a valid field selector key")
        if expression.get("operator") not in ("In", "NotIn"):
            found.invalid(f"{at}.operator", expression.get("operator"), "not a valid selector operator")


def _expression(found: Findings, expression: Mapping, field: str, *, comparing: bool) -> None:
    values = sequence(expression, "values")
    match expression.get("operator"):
        case "In" | "NotIn":
            if not values:
                found.required(f"{field}.values", NEEDS_VALUES)
        case "Exists" | "DoesNotExist":
            if values:
                found.forbidden(f"{field}.values", NEEDS_NONE)
        case "Gt" | "Lt" if comparing:
            if len(values) != 1:
                found.required(f"{field}.values", NEEDS_ONE)
        case other:
            found.invalid(f"{field}.operator", other or "", "not a valid selector operator")
    key = text(expression, "key")
    found.fault(f"{field}.key", key, key_fault(key))


def selects(selector: Mapping, given: Mapping) -> bool:
    """Whether a LabelSelector that is well formed selects these labels."""
    if any(given.get(key) != value for key, value in mapping(selector, "matchLabels").items()):
        return False
    return all(_matches(expression, given) for expression in mappings(selector, "matchExpressions"))


def _matches(expression: Mapping, given: Mapping) -> bool:
    key, values = text(expression, "key"), sequence(expression, "values")
    match expression.get("operator"):
        case "In":
            return key in given and given[key] in values
        case "NotIn":
            return key not in given or given[key] not in values
        case "Exists":
            return key in given
        case "DoesNotExist":
            return key not in given
    return True
