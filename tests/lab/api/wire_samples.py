"""Bodies that kubectl 1.32 really sent, and objects of any kind made up from the schema."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from gpuworkshop.lab.api.kinds import BUILT_IN, Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.wire import schema
from gpuworkshop.lab.api.wire.schema import Field, fields_of

TYPED = [kind for kind in BUILT_IN if kind.message]
_DEEPEST = 7
_FILE = Path(__file__).parents[2] / "data" / "wire-kubectl-1.32.json"


@dataclass(frozen=True)
class Sent:
    """What one command posted, and what kubectl itself prints of the same object (None if it cannot)."""

    command: str
    body: bytes
    shown: Object | None


def sent() -> list[Sent]:
    """Every captured body."""
    captured = json.loads(_FILE.read_text())
    return [Sent(each["command"], base64.b64decode(each["body"]), each["json"]) for each in captured]


def without_nulls(value: Any) -> Any:
    """The value without the fields that are null."""
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@st.composite
def objects(draw: st.DrawFn) -> tuple[Kind, Object]:
    """A kind, and an object of it with some of its fields set, in the form that the API server writes."""
    kind = draw(st.sampled_from(TYPED))
    return kind, {"apiVersion": kind.api_version, "kind": kind.kind, **draw(_mapping(kind.message, 0))}


@st.composite
def _mapping(draw: st.DrawFn, message: str, depth: int) -> Object:
    fields = [field for field in fields_of(message).values() if field.number]
    if depth >= _DEEPEST:
        fields = [field for field in fields if not field.message]
    chosen = draw(st.lists(st.sampled_from(fields), max_size=3, unique=True)) if fields else []
    return {field.name: draw(_value(field, depth)) for field in chosen}


def _value(field: Field, depth: int) -> st.SearchStrategy[Any]:
    one = _mapping(field.message, depth + 1) if field.message else _SCALARS[field.type]
    if field.repeated:
        return st.lists(one, min_size=1, max_size=2)
    return st.dictionaries(_TEXTS, one, min_size=1, max_size=2) if field.map else one


def _whole(limit: int) -> st.SearchStrategy[int]:
    return st.integers(-limit, limit - 1).filter(bool)


_TEXTS = st.text(min_size=1, max_size=5)
_TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 1, 1), timezones=st.just(UTC)).filter(
    lambda at: abs(at - datetime(1970, 1, 1, tzinfo=UTC)) > timedelta(seconds=1)
)
_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": _TEXTS,
    "bool": st.just(True),
    "int32": _whole(2**31),
    "int64": _whole(2**63),
    "bytes": st.binary(min_size=1, max_size=5).map(lambda raw: base64.b64encode(raw).decode()),
    schema.QUANTITY: st.sampled_from(["1", "100m", "0", "1536Mi"]),
    schema.INT_OR_STRING: st.integers(-(2**31), 2**31 - 1) | st.text(max_size=4),
    schema.TIME: _TIMES.map(lambda at: f"{at:%Y-%m-%dT%H:%M:%SZ}".rjust(20, "0")),
    schema.MICRO_TIME: _TIMES.map(lambda at: f"{at:%Y-%m-%dT%H:%M:%S.%fZ}".rjust(27, "0")),
    schema.FIELDS_V1: st.just({"f:spec": {"f:replicas": {}}}),
    schema.RAW_EXTENSION: st.just({"spec": {"a": [1, None]}}),
    **{name: st.lists(_TEXTS, min_size=1, max_size=2) for name in schema.EXTRA_VALUES},
}
