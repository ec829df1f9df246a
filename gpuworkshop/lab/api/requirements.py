"""What a label selector requires: the parsed form, which can be printed again and asked about labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from gpuworkshop.lab.api.label_syntax import key_fault, value_fault

SET, EXACT = ("in", "notin"), ("=", "==", "!=")
COMPARING = {"gt": ">", "lt": "<"}
UNARY = ("exists", "!")
_WHOLE = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True)
class Requirement:
    """One requirement. `exists` and `!` have no values, `in` and `notin` any number, the others one."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet it. What is not there is also not equal, and not in."""
        value = labels.get(self.key)
        match self.operator:
            case "in" | "=" | "==":
                return value in self.values
            case "notin" | "!=":
                return value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        if not _WHOLE.fullmatch(value):
            return False
        seen, bound = int(value), int(*self.values)
        return seen > bound if self.operator == "gt" else seen < bound

    def fault(self) -> str:
        """Why the requirement makes no sense, in the API's words; "" if it does."""
        if why := key_fault(self.key):
            return f'key: Invalid value: "{self.key}": {why}'
        if self.operator in SET and not self.values:
            return "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
        if self.operator in COMPARING and not all(map(_WHOLE.fullmatch, self.values)):
            why = "for 'Gt', 'Lt' operators, the value must be an integer"
            return f'values[0]: Invalid value: "{"".join(self.values)}": {why}'
        for index, value in enumerate(sorted(self.values)):
            if why := value_fault(value):
                return f'values[{index}][{self.key}]: Invalid value: "{value}": {why}'
        return ""

    def __str__(self) -> str:
        if self.operator in UNARY:
            return self.key if self.operator == "exists" else f"!{self.key}"
        if self.operator in SET:
            # The empty value alone is written `(,)`, for `()` holds none.
            return f"{self.key} {self.operator} ({','.join(sorted(self.values)) or ','})"
        (value,) = self.values
        return f"{self.key}{COMPARING.get(self.operator, self.operator)}{value}"
