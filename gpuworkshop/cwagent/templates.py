"""`$1` and `${name}` in a relabel rule's replacement or target, filled in as Go's regexp.Expand does.

`$name` takes as many letters, digits and underscores as follow, so that `$1_gpu` names a group `1_gpu`,
which there is not, and gives nothing; `${1}_gpu` is what was meant. `$$` is a dollar.
"""

from __future__ import annotations

from gpuworkshop.cwagent.regexes import Match, Regex

MOST_GROUPS = 100_000_000


def has_variable(template: str) -> bool:
    """Whether there is anything to fill in."""
    return "$" in template


def expand(template: str, regex: Regex, match: Match) -> str:
    """The template with each variable replaced by what its group matched, or by nothing."""
    parts = []
    rest = template
    while rest:
        before, dollar, rest = rest.partition("$")
        parts.append(before)
        if not dollar:
            break
        if rest.startswith("$"):
            parts.append("$")
            rest = rest[1:]
            continue
        name, after = _variable(rest)
        if not name:
            parts.append("$")
            continue
        parts.append(_value(name, regex, match))
        rest = after
    return "".join(parts)


def _variable(text: str) -> tuple[str, str]:
    """The variable's name at the start of `text` and what follows it; "" if there is none."""
    brace = text.startswith("{")
    start = end = 1 if brace else 0
    while end < len(text) and (text[end].isalpha() or text[end].isdecimal() or text[end] == "_"):
        end += 1
    if end == start or (brace and text[end : end + 1] != "}"):
        return "", text
    return text[start:end], text[end + 1 if brace else end :]


def _value(name: str, regex: Regex, match: Match) -> str:
    number = _number(name)
    if number is None:
        number = regex.groupindex.get(name)
    if number is None or number > regex.groups:
        return ""
    return match.group(number) or ""


def _number(name: str) -> int | None:
    if not (name.isascii() and name.isdecimal()) or (name[0] == "0" and len(name) > 1):
        return None
    return int(name) if len(name) < len(str(MOST_GROUPS)) + 1 else None
