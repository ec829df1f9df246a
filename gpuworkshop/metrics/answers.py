"""From the bytes of a Prometheus answer to arrays, quickly.

A range query of an hour is megabytes of `[1700000000,"97.5"]`. Turned into Python objects pair by pair it
costs seconds and hundreds of megabytes. Here the values of each series are left as raw JSON, stripped of
brackets and quotes, and read as one flat list of numbers; only a series that holds NaN or Inf, which JSON
does not know, takes the slower way. One list a series also gives the garbage collector nothing to walk.
"""

from __future__ import annotations

import struct
from typing import Generic, TypeVar

import msgspec
import numpy as np

T = TypeVar("T")

_NOTHING = msgspec.Raw(b"[]")

BROKEN = (msgspec.MsgspecError, ValueError, RecursionError)
"""What reading an answer raises if it is not what the API promises (UnicodeDecodeError is a ValueError)."""


class Series(msgspec.Struct, gc=False):
    """Labels, and points still as raw JSON: `values` of a matrix, `value` of a vector."""

    metric: dict[str, str] = {}
    values: msgspec.Raw = _NOTHING
    value: msgspec.Raw = _NOTHING

    def points(self) -> np.ndarray:
        """Epoch seconds and values, shape (points, 2), float64. ValueError if they are not such pairs."""
        return _pairs(self.values if self.values is not _NOTHING else self.value)

    @property
    def has_numbers(self) -> bool:
        """False for native histograms, which no single number stands for."""
        return self.values is not _NOTHING or self.value is not _NOTHING


class Matrix(msgspec.Struct):
    """What a range query gives."""

    result: list[Series]

    def series(self) -> list[Series]:
        """Its series."""
        return self.result


class Instant(msgspec.Struct):
    """What an instant query gives: a vector, a scalar, or for `name[5m]` a matrix."""

    resultType: str  # noqa: N815 - as the API spells it
    result: msgspec.Raw

    def series(self) -> list[Series]:
        """Its series; a scalar is one without labels. ValueError for a string."""
        if self.resultType in ("matrix", "vector"):
            return msgspec.json.decode(self.result, type=list[Series])
        if self.resultType == "scalar":
            return [Series(value=self.result)]
        raise ValueError(f"a {self.resultType} where series belong")


class Answer(msgspec.Struct, Generic[T]):
    """The envelope of every answer of the HTTP API, around data of some kind; without it for an error."""

    status: str
    data: T | None = None
    errorType: str = ""  # noqa: N815 - as the API spells it
    error: str = ""
    warnings: list[str] = []
    infos: list[str] = []


def read(body: bytes | bytearray, kind: type[T]) -> Answer[T]:
    """An answer whose data are of that kind. Raises one of BROKEN."""
    return msgspec.json.decode(body, type=Answer[kind])  # type: ignore[valid-type]


def _pairs(raw: msgspec.Raw) -> np.ndarray:
    text = bytes(raw).translate(None, b'[]" \n')
    try:
        flat = msgspec.json.decode(b"[%b]" % text, type=list[float])
    except msgspec.DecodeError:
        flat = [float(number) for number in text.split(b",")]
    # struct.pack takes a third of the time of np.array(flat)
    return np.frombuffer(struct.pack(f"{len(flat)}d", *flat)).reshape(-1, 2)
