"""Label selectors as objects carry them: `matchLabels`, `matchExpressions`, terms of a node affinity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuworkshop.lab.api.requirements import Requirement

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector selects these labels: an empty one selects all, none selects nothing."""
    if selector is None:
        return False
    return contains(labels, selector.get("matchLabels") or {}) and all(
        meets(requirement, labels) for requirement in selector.get("matchExpressions") or ()
    )


def contains(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether every label that is wanted is there, with that value."""
    return all(labels.get(key) == value for key, value in wanted.items())


def meets(requirement: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether labels, or a node's fields, meet one requirement."""
    values = frozenset(requirement.get("values") or ())
    return Requirement(requirement["key"], _OPERATORS[requirement["operator"]], values).matches(labels)
