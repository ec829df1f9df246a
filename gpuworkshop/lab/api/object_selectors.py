"""Label selectors as objects carry them: `matchLabels`, `matchExpressions`, terms of node affinity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuworkshop.lab.api.problems import bad_request
from gpuworkshop.lab.api.requirements import Requirement

Labels = Mapping[str, str]
# Gt and Lt are for the labels of nodes alone; validation refuses them elsewhere.
_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}


def selects(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Whether a LabelSelector selects these labels: an empty one selects all, none selects nothing.

    ApiError 400 for an operator that does not exist.
    """
    if selector is None:
        return False
    return contains(labels, selector.get("matchLabels") or {}) and all(
        meets(expression, labels) for expression in selector.get("matchExpressions") or ()
    )


def contains(labels: Labels, wanted: Labels) -> bool:
    """Whether every label that is wanted is there, with that value."""
    return all(labels.get(key) == value for key, value in wanted.items())


def meets(expression: Mapping[str, Any], labels: Labels) -> bool:
    """Whether labels, or a node's fields, meet one expression; ApiError 400 as above."""
    return _requirement(expression).matches(labels)


def requirements_of(selector: Mapping[str, Any]) -> list[Requirement]:
    """What a LabelSelector requires; ApiError 400 as above."""
    exact = [
        Requirement(key, "=", frozenset([value]))
        for key, value in sorted((selector.get("matchLabels") or {}).items())
    ]
    return exact + [_requirement(expression) for expression in selector.get("matchExpressions") or ()]


def _requirement(expression: Mapping[str, Any]) -> Requirement:
    operator = _OPERATORS.get(expression["operator"])
    if operator is None:
        raise bad_request(f'"{expression["operator"]}" is not a valid label selector operator')
    return Requirement(expression["key"], operator, frozenset(expression.get("values") or ()))
