"""The JSONPath of a CRD's printer columns: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`.

Kubernetes' dialect is not that of the libraries (a dot in a key is written `\\.`), and its columns use only
this part of it: keys, indexes, `*`, and a filter that compares one field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

_STEP = re.compile(
    r"""\.(?P<key>(?:[^.\[\]\\*]|\\.)+)      # .key, with \. for a dot in it
      | \.(?P<all>\*)
      | \[(?P<every>\*)\]
      | \[(?P<index>-?\d+)\]
      | \[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]
      | \[\?\(\s*@\.?(?P<field>[^\s=!<>]*)\s*(?P<operator>==|!=)\s*(?P<value>.+?)\s*\)\]
    """,
    re.VERBOSE,
)


def find(obj: object, path: str) -> list[Any]:
    """Everything that `path` leads to; nothing for a path that is no such path."""
    steps = _steps(path)
    found = [] if steps is None else [obj]
    for step in steps or ():
        found = [value for each in found for value in _follow(each, step)]
    return found


def text_of(values: Iterable[Any]) -> str:
    """Values as kubectl prints them: texts bare, everything else as JSON, one beside the other."""
    return " ".join(
        value if isinstance(value, str) else json.dumps(value, separators=(",", ":")) for value in values
    )


@lru_cache(maxsize=512)
def _steps(path: str) -> tuple[re.Match[str], ...] | None:
    """The steps of a path; None where it is none."""
    path = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    path = path if path.startswith((".", "[")) else f".{path}"
    steps, at = [], 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return None
        steps.append(step)
        at = step.end()
    return tuple(steps)


def _follow(value: Any, step: re.Match[str]) -> Iterator[Any]:
    """What one step leads to from `value`."""
    key = step["key"] or step["quoted"]
    if key is not None:
        key = re.sub(r"\\(.)", r"\1", key)
        if isinstance(value, dict) and key in value:
            yield value[key]
    elif step["index"] is not None:
        index = int(step["index"])
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]
    elif isinstance(value, list):
        yield from value if step["field"] is None else (each for each in value if _passes(each, step))
    elif isinstance(value, dict) and step["field"] is None:
        yield from value.values()


def _passes(value: Any, step: re.Match[str]) -> bool:
    found = find(value, f".{step['field']}") if step["field"] else [value]
    return (bool(found) and found[0] == _literal(step["value"])) is (step["operator"] == "==")


def _literal(text: str) -> Any:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError:
        return text
