"""A query's values as the API server reads them: with its ideas of true and of a number, and in its words."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuworkshop.lab.api.objects import seconds_of
from gpuworkshop.lab.api.problems import bad_request

LARGEST = 2**63


def flag(query: Mapping[str, str], name: str) -> bool:
    """Only a value of false or 0, or no value at all, is false."""
    return name in query and query[name].lower() not in ("false", "0")


def number(query: Mapping[str, str], name: str) -> int | None:
    """A 64-bit number, None where it is not in the query; ApiError 400 for anything else."""
    text = query.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    value = int(text)
    if not -LARGEST <= value < LARGEST:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


def time(query: Mapping[str, str], name: str) -> float | None:
    """An RFC 3339 time in Unix seconds, None where it is not in the query; ApiError 400 for anything else."""
    text = query.get(name)
    if not text or text == "null":
        return None
    # fromisoformat also takes a date alone, and a time without its zone.
    if re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$", text):
        try:
            return seconds_of(text)
        except ValueError as error:
            raise bad_request(f'parsing time "{text}": {error}') from error
    raise bad_request(
        f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
    )
