"""What is wrong with an object, collected field by field, in the words of the API server."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from gpuworkshop.lab.api.problems import Cause

NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


class Findings:
    """The causes found so far; one method for each sort."""

    def __init__(self) -> None:
        self.causes: list[Cause] = []

    def _add(self, reason: str, field: str, words: str, detail: str) -> None:
        self.causes.append(Cause(f"FieldValue{reason}", f"{words}: {detail}" if detail else words, field))

    def required(self, field: str, detail: str = "") -> None:
        """Something has to be there."""
        self._add("Required", field, "Required value", detail)

    def invalid(self, field: str, value: object, detail: str) -> None:
        """It is not of the right form, or out of bounds."""
        self._add("Invalid", field, f"Invalid value: {shown(value)}", detail)

    def fault(self, field: str, value: object, detail: str) -> None:
        """The same, where `detail` says that there is a fault; "" is none."""
        if detail:
            self.invalid(field, value, detail)

    def duplicate(self, field: str, value: object) -> None:
        """It is there already."""
        self._add("Duplicate", field, f"Duplicate value: {shown(value)}", "")

    def unsupported(self, field: str, value: object, supported: Sequence[str]) -> None:
        """It is none of those that it may be."""
        words = f"supported values: {', '.join(map(shown, supported))}" if supported else ""
        self._add("NotSupported", field, f"Unsupported value: {shown(value)}", words)

    def forbidden(self, field: str, detail: str) -> None:
        """It may not be there, or not be changed."""
        self._add("Forbidden", field, "Forbidden", detail)

    def not_found(self, field: str, value: object) -> None:
        """What it refers to is not there."""
        self._add("NotFound", field, f"Not found: {shown(value)}", "")

    def too_long(self, field: str, longest: int) -> None:
        """It has too many bytes."""
        self._add("TooLong", field, "Too long", f"may not be more than {longest} bytes")

    def too_many(self, field: str, count: int, most: int) -> None:
        """A list has too many entries."""
        self._add("TooMany", field, f"Too many: {count}", f"must have at most {most} items")

    def one_of(self, field: str, value: object, supported: Sequence[str], *, optional: bool = False) -> None:
        """Check that a value is one of those that are supported, or is not there where it is `optional`."""
        if value in (None, ""):
            if not optional:
                self.required(field)
        elif value not in supported:
            self.unsupported(field, value, supported)

    def at_least(self, field: str, value: object, least: int, words: str = NOT_NEGATIVE) -> None:
        """Check that a whole number is not below `least`; what is no number is another's business."""
        if type(value) is int and value < least:
            self.invalid(field, value, words)

    def unchanged(self, field: str, new: object, old: object, words: str = IMMUTABLE) -> None:
        """Check that a field is as it was."""
        if new != old:
            self.invalid(field, new, words)

    def unique(self, values: Iterable[tuple[str, object]]) -> None:
        """Check that no value comes twice; each comes with its field, and empty ones do not count."""
        seen = []
        for field, value in values:
            if value and value in seen:
                self.duplicate(field, value)
            seen.append(value)


def shown(value: object) -> str:
    """A value as messages quote it."""
    if value is None:
        return '"null"'
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
