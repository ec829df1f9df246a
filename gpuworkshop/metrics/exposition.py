"""Read the text that a scrape returns: Prometheus's exposition format, and OpenMetrics.

Why not prometheus_client's parser: it renames DCGM's counters to `…_total`, and takes 20 times as long.
Here every name stays as the exporter wrote it. One regular expression reads a sample line; the label
block, which an exporter repeats for each of its metrics, is understood once and then found in a cache.

Exemplars are checked and left out. In the text format a timestamp is in milliseconds, in OpenMetrics
(known by its last line, `# EOF`) in seconds; `Sample.timestamp` is always in seconds.
Source: the exposition formats page of Prometheus's documentation, and the OpenMetrics 1.0 text.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from gpuworkshop.errors import ExpositionError

SUFFIXES = {
    "histogram": ("_bucket", "_sum", "_count", "_created"),
    "gaugehistogram": ("_bucket", "_gsum", "_gcount"),
    "summary": ("_sum", "_count", "_created"),
    "counter": ("_total", "_created"),
    "info": ("_info",),
}
TYPES = {*SUFFIXES, "gauge", "stateset", "unknown", "untyped"}

_QUOTED = r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*+"
_NUMBER = r"[-+.0-9A-Za-z]++"
_POINT = rf"[ \t]*+({_NUMBER})(?:[ \t]++({_NUMBER}))?[ \t]*+"
_BLOCK = r'\{[^"{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}]*+)*+\}'
# Without a # there is one label block at most: it ends at the last brace, and _labels checks its inside.
_SIMPLE = re.compile(rf"({_NAME})[ \t]*+(\{{.*\}})?{_POINT}")
_SAMPLE = re.compile(rf"({_NAME})[ \t]*+({_BLOCK})?{_POINT}(?:#[ \t]*+({_BLOCK}){_POINT})?")
_LABEL = re.compile(rf"[ \t]*+([a-zA-Z_][a-zA-Z0-9_]*+)[ \t]*+=[ \t]*+{_QUOTED}[ \t]*+(?:,|$)")
_META = re.compile(rf"#[ \t]++(HELP|TYPE|UNIT)[ \t]++({_NAME})(?:[ \t]++(.*))?")
_ESCAPE = re.compile(r"\\([\\n\"])")


class Sample(msgspec.Struct, frozen=True, gc=False):
    """One line: a name as the exporter wrote it, labels, a value, and epoch seconds if it gave a time."""

    name: str
    labels: dict[str, str]
    value: float
    timestamp: float | None = None


class Family(msgspec.Struct):
    """The samples under one TYPE. `type` is "untyped" where the exporter declared none."""

    name: str
    type: str = "untyped"
    help: str = ""
    unit: str = ""
    samples: list[Sample] = []


def parse_exposition(body: bytes | str) -> list[Family]:
    """Families in the order of their first line.

    Raises ExpositionError, with the line, for a body that is not UTF-8, is cut off, or breaks the format.
    """
    lines = _text(body).split("\n")
    families: dict[str, Family] = {}
    per_second = 1.0 if _is_openmetrics(lines) else 1000.0
    family = Family("")
    for number, line in enumerate(lines, 1):
        match = (_SAMPLE if "#" in line else _SIMPLE).fullmatch(line)
        if match is None:
            _read_other(line, number, families, last=number == len(lines))
            continue
        name, block, value, timestamp, *exemplar = match.groups()
        if name != family.name or name not in families:
            family = _family_of(name, families)
        try:
            labels = _labels(block).copy() if block else {}
            when = _number(timestamp) / per_second if timestamp else None
            family.samples.append(Sample(name, labels, _number(value), when))
            if any(exemplar):
                _check_exemplar(*exemplar)
        except ValueError as error:
            raise _wrong(str(error), number, line) from None
    return list(families.values())


def _text(body: bytes | str) -> str:
    text = body if isinstance(body, str) else _decoded(body)
    return text.removeprefix("\ufeff").replace("\r\n", "\n")


def _decoded(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise _wrong("bytes that are not UTF-8", line, repr(body[error.start : error.start + 20])) from None


def _is_openmetrics(lines: list[str]) -> bool:
    return next((line for line in reversed(lines) if line), "") == "# EOF"


def _read_other(line: str, number: int, families: dict[str, Family], *, last: bool) -> None:
    """A line that is no sample: HELP, TYPE, UNIT, a comment, or empty; anything else is an error."""
    line = line.strip(" \t")
    if not line:
        return
    if not line.startswith("#"):
        cut = "a last line that is cut off" if last else "a line that is neither a sample nor a comment"
        raise _wrong(cut, number, line)
    if match := _META.fullmatch(line):
        keyword, name, text = match.groups(default="")
        _describe(families.setdefault(name, Family(name)), keyword, text, number, line)


def _describe(family: Family, keyword: str, text: str, number: int, line: str) -> None:
    if keyword == "HELP":
        family.help = _unescaped(text)
    elif keyword == "UNIT":
        family.unit = text
    elif (kind := text.strip()) not in TYPES:
        raise _wrong(f"a TYPE that does not exist, {kind!r}", number, line)
    elif family.type not in ("untyped", kind):
        raise _wrong(f"a second TYPE for {family.name}", number, line)
    else:
        family.type = kind


def _family_of(name: str, families: dict[str, Family]) -> Family:
    """The declared family of a sample: of its very name, or of its name without a suffix of its type."""
    base, underscore, suffix = name.rpartition("_")
    parent = families.get(base)
    if name not in families and parent and underscore + suffix in SUFFIXES.get(parent.type, ()):
        return parent
    return families.setdefault(name, Family(name))


@lru_cache(maxsize=20_000)
def _labels(block: str) -> dict[str, str]:
    """The labels of a block with its braces. Shared by the cache: callers copy. ValueError if malformed."""
    inside = block[1:-1].strip(" \t")
    labels: dict[str, str] = {}
    at = 0
    while at < len(inside):
        if (match := _LABEL.match(inside, at)) is None:
            raise ValueError(f"labels that cannot be read from {inside[at : at + 30]!r} on")
        name, value = match.groups()
        if name in labels:
            raise ValueError(f"label {name} twice")
        labels[name] = _unescaped(value)
        at = match.end()
    return labels


def _check_exemplar(block: str, value: str, timestamp: str | None) -> None:
    _labels(block)
    _number(value)
    _number(timestamp or "0")


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda match: "\n" if match[1] == "n" else match[1], text)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} where a number belongs") from None


def _wrong(what: str, line: int, text: str) -> ExpositionError:
    shown = text if len(text) <= 120 else text[:117] + "…"
    return ExpositionError(
        f"line {line} has {what}: {shown}",
        line=line,
        step="reading a metrics page",
        todo="look at that line of the exporter's /metrics page; was the answer cut off on its way?",
    )
