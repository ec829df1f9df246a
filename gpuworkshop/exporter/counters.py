"""Which fields to export: dcgm-exporter's counters CSV, each line a field, its type and a help text.

    # a comment
    DCGM_FI_DEV_GPU_UTIL,      gauge, GPU utilization (in %).
    DCGM_FI_DRIVER_VERSION,    label, Driver version

What DCGM does not know is an error, with its line. What DCGM knows and this exporter cannot read is left out,
and told: in the log, and as gpuworkshop_field_unavailable.
"""

from __future__ import annotations

import csv
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path

from gpuworkshop.errors import CountersError
from gpuworkshop.exporter.schema import SCHEMAS, Metric, Schema

log = logging.getLogger(__name__)

_STEP = "reading the counters file"
_TYPES = ("gauge", "counter", "histogram", "summary", "label")
_LARGEST = 1_000_000

NOT_READ, TWICE, NO_SUCH_LABEL, NO_SUCH_TYPE = (
    "not_read_by_this_exporter",
    "twice_in_the_counters_file",
    "no_label_of_this_exporter",
    "type_needs_several_values",
)


@dataclass(frozen=True)
class Counters:
    """What to export: metrics in their order, whether the driver's version is a label, and what is left out.

    `skipped` has the field's name and the reason of each line that cannot be served.
    """

    metrics: Sequence[Metric]
    driver_label: bool = True
    skipped: Sequence[tuple[str, str]] = ()


def default(schema: Schema, *, extended: bool = False) -> Counters:
    """The fields of dcgm-exporter's own default file."""
    return Counters(schema.metrics + (schema.extended if extended else ()))


def read(path: Path, schema: Schema) -> Counters:
    """The fields of a counters file. Raises CountersError, which names the line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            text = file.read(_LARGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise _wrong(f"{path} cannot be read: {why}", "give a CSV file with --collectors") from error
    if len(text) > _LARGEST:
        raise _wrong(f"{path} is larger than a counters file can be", "give a CSV file with --collectors")
    return parse(text, schema, str(path))


def parse(text: str, schema: Schema, name: str = "counters") -> Counters:
    """The fields of a counters file's text; `name` is for errors. Raises CountersError."""
    known = {metric.name: metric for metric in schema.metrics + schema.extended}
    chosen: dict[str, Metric] = {}
    skipped: list[tuple[str, str]] = []
    driver_label = False
    for where, field, kind, about in _rows(text, name):
        if field == schema.driver_label and kind == "label":
            driver_label = True
        elif field in chosen:
            skipped.append((field, TWICE))
        elif field not in known and not _is_dcgms(field):
            raise _wrong(f"{where}: {_unknown(field, schema)}", _instead(field, known))
        elif reason := _unservable(field in known, kind):
            skipped.append((field, reason))
        else:
            chosen[field] = replace(known[field], type=kind, help=about)
    for field, reason in skipped:
        log.warning("%s: %s is not exported: %s", name, field, reason.replace("_", " "))
    return Counters(tuple(chosen.values()), driver_label, tuple(skipped))


def _rows(text: str, name: str) -> Iterator[tuple[str, str, str, str]]:
    """Where it stands, field, type and help of each line that is neither empty nor a comment."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        where = f"{name}, line {number}"
        try:
            (parts,) = csv.reader([line], skipinitialspace=True, strict=True)
        except (csv.Error, ValueError) as error:
            raise _wrong(f"{where}: {error}", "close each quotation mark on its line") from error
        if len(parts) != 3:
            seen = f"{where}: {len(parts)} values where field, type and help belong"
            raise _wrong(seen, "put a help text that has commas between quotation marks")
        field, kind, about = (part.strip() for part in parts)
        if kind not in _TYPES:
            raise _wrong(f"{where}: {kind!r} is no type", f"write one of {', '.join(_TYPES)}")
        yield where, field, kind, about.replace("\\", r"\\")


def _unservable(known: bool, kind: str) -> str:
    """Why a field of this type cannot be served; "" if it can."""
    if kind == "label":
        return NO_SUCH_LABEL
    if kind in ("histogram", "summary"):
        return NO_SUCH_TYPE
    return "" if known else NOT_READ


def _is_dcgms(field: str) -> bool:
    return any(pattern.fullmatch(field) for pattern in _dcgms())


@cache
def _dcgms() -> tuple[re.Pattern[str], ...]:
    text = resources.files("gpuworkshop.exporter").joinpath("data/dcgm-fields.txt").read_text("utf-8")
    return tuple(re.compile(line) for line in text.splitlines() if line and not line.startswith("#"))


def _unknown(field: str, schema: Schema) -> str:
    for other in SCHEMAS.values():
        for metric in other.metrics + other.extended:
            if metric.name == field:
                return f"{field} is a name of release {other.release}, not of {schema.release}"
    return f"{field!r} is no field of DCGM"


def _instead(field: str, known: Iterable[str]) -> str:
    near = get_close_matches(field, list(known), n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else "see DCGM's list of field identifiers"


def _wrong(seen: str, todo: str) -> CountersError:
    return CountersError(seen, step=_STEP, todo=todo)
