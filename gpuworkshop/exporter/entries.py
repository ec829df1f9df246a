"""A mapping from a YAML file, read key by key: each wrong value is a GpuFileError that says where it is."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from gpuworkshop.errors import GpuFileError

STEP = "reading the GPU file"

_KINDS = {
    type(None): "nothing",
    dict: "a mapping",
    list: "a list",
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "a yes or no",
}
# A bare on or off is a truth value to YAML 1.1.
_WORDS = {"True": "on", "False": "off"}


class Entry:
    """One mapping of the file; `where` is the words that say where it stands, such as `line 3: pods[0]`."""

    def __init__(self, where: str, found: Any) -> None:
        self.where = where
        if not isinstance(found, dict):
            raise wrong(f"{where}: {kind(found)} where a mapping belongs", "write `key: value` pairs")
        self._found: dict[str, Any] = {_WORDS.get(str(key), str(key)): found[key] for key in found}

    def __contains__(self, key: str) -> bool:
        return self._found.get(key) is not None

    def only(self, *known: str) -> None:
        """Refuse every other key."""
        for key in self._found:
            if key not in known:
                raise self.bad(f"unknown key {key!r}", instead(key, known))

    def text(self, key: str, default: str | None = None) -> str:
        """A text that is not empty; without a default it must be there."""
        found = default if key not in self else self._found[key]
        if not isinstance(found, str) or not found:
            seen = f"{key} is missing" if found is None else f"{key} is {found!r}, which is no text"
            raise self.bad(seen, f"write `{key}:` and a text, in quotes if it looks like something else")
        return found

    def whole(self, key: str) -> int:
        """A whole number from 0 that must be there."""
        found = self._found.get(key)
        if type(found) is not int or found < 0:
            seen = f"{key} is missing" if found is None else f"{key} is {found!r}, not a whole number from 0"
            raise self.bad(seen, f"write `{key}: 0`, or another whole number")
        return found

    def number(self, key: str, default: float, least: float, most: float) -> float:
        """A number between two others."""
        found = self._found[key] if key in self else default
        if isinstance(found, bool) or not isinstance(found, int | float) or not least <= found <= most:
            raise self.bad(
                f"{key} is {found!r}",
                f"give a number from {least:g} to {most:g}, such as `{key}: {default:g}`",
            )
        return float(found)

    def entries(self, key: str) -> list[Entry]:
        """The mappings of a list that may be missing."""
        found = self._found[key] if key in self else []
        if not isinstance(found, list):
            raise self.bad(f"{key} is {kind(found)}, not a list", f"start each entry of {key} with a dash")
        return [Entry(f"{self.where}: {key}[{place}]", entry) for place, entry in enumerate(found)]

    def entry(self, key: str, short: str) -> Entry:
        """A mapping, or one word that stands for `{short: word}`."""
        found = self._found[key]
        return Entry(f"{self.where}: {key}", {short: found} if isinstance(found, str) else found)

    def bad(self, seen: str, todo: str) -> GpuFileError:
        """An error about this entry."""
        return wrong(f"{self.where}: {seen}", todo)


def wrong(seen: str, todo: str) -> GpuFileError:
    """An error about the file."""
    return GpuFileError(seen, step=STEP, todo=todo)


def kind(found: Any) -> str:
    """What a YAML value is, in words."""
    return _KINDS.get(type(found), f"a {type(found).__name__}")


def instead(found: str, known: Sequence[str]) -> str:
    """What to write for a wrong name."""
    near = get_close_matches(found, known, n=1)
    every = ", ".join(known)
    return f"did you mean {near[0]}? There are {every}" if near else f"write one of {every}"
