"""Names that look like the one somebody asked for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_ASIDE = re.compile(
    r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|`[^`]*`|\{[^}]*\}|\[[^\]]*\]|\b(?:by|without|on|ignoring)\s*\([^)]*\)'
)
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*(?!\s*\()\b")
_WORDS = {"and", "or", "unless", "bool", "offset", "group_left", "group_right", "inf", "nan"}


def near(word: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Up to `count` of the known names, the likest first; capitals do not matter."""
    by_folded = {name.casefold(): name for name in known}
    found = difflib.get_close_matches(word.casefold(), by_folded, n=count, cutoff=0.6)
    return tuple(by_folded[name] for name in found)


def metric_names(promql: str) -> list[str]:
    """The words of a query that can be names of metrics, in order: no labels, functions or operators."""
    bare = _ASIDE.sub(lambda match: "" if match[0].startswith(("{", "[")) else " ", promql)
    return [name for name in dict.fromkeys(_NAME.findall(bare)) if name.casefold() not in _WORDS]
