"""The type of a metric as the agent looks it up: by its TYPE line, under its name before any relabelling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpuworkshop.metrics.exposition import Family

SUFFIXES = ("_count", "_sum", "_bucket")
TAKEN = ("gauge", "counter", "summary")
NO_TYPE = "it has no TYPE line, and the agent drops what has none"


def declared(families: Iterable[Family]) -> dict[str, str]:
    """The name of each family that has a TYPE line, with its type."""
    return {family.name: family.type for family in families if family.type != "untyped"}


def lookup(name: str, types: Mapping[str, str]) -> str:
    """The type, "" if there is none: without a summary's suffix first, then as it is, or without `_total`."""
    stripped = next((name.removesuffix(end) for end in SUFFIXES if name.endswith(end) and name != end), name)
    found = types.get(stripped)
    if found is None:
        found = types.get(name if stripped != name else name.removesuffix("_total"))
    return found or ""


def is_internal(name: str) -> bool:
    """Whether Prometheus made it of the scrape itself."""
    return name == "up" or name.startswith("scrape_")


def why_dropped(name: str, kind: str) -> str:
    """Why the agent drops a metric of that type; "" if it takes it."""
    if is_internal(name):
        return "the agent drops what Prometheus says of the scrape itself"
    if not kind:
        return NO_TYPE
    if kind not in TAKEN:
        return f"its type is {kind}; the agent takes {', '.join(TAKEN)} only"
    return ""


def is_cumulative(name: str, kind: str) -> bool:
    """Whether the agent sends what was added since the last scrape instead of the value."""
    return kind == "counter" or (kind == "summary" and name.endswith(("_count", "_sum")))
