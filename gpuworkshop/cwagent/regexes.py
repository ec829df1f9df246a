"""Regular expressions as Prometheus and the agent understand them: RE2, with Go's words for what is wrong.

Python's own `re` accepts what RE2 refuses (look-ahead) and refuses what RE2 accepts (`(?i)` in the midst).
The library is RE2 in C++; its messages are put into those of Go's package, which a learner finds in the
agent's log.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

import re2  # type: ignore[import-untyped]

ANCHORED = "^(?s:{})$"
MOST_BYTES = 100_000
_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # RE2 in C++ knows it, Go's package does not
_GO_WORDS = {
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}


class Match(Protocol):
    """What a search finds; group 0 is the whole."""

    def group(self, number: int | str = 0, /) -> str | None:
        """The text of a group, None if it took no part."""
        ...


class Regex(Protocol):
    """A compiled expression."""

    @property
    def groups(self) -> int:
        """How many groups it has."""
        ...

    @property
    def groupindex(self) -> dict[str, int]:
        """The numbers of the named groups."""
        ...

    def search(self, text: str, /) -> Match | None:
        """The leftmost match in `text`."""
        ...


def compile_anchored(text: str) -> Regex:
    """As relabel rules do: the whole value must match, and a dot matches a newline too. Raises ValueError."""
    return compile_regex(ANCHORED.format(text))


@lru_cache(maxsize=4096)
def compile_regex(text: str) -> Regex:
    """As the agent's matchers do: it may match anywhere. Raises ValueError in the words of Go's package."""
    if len(text) > MOST_BYTES:
        raise ValueError("error parsing regexp: expression too large")
    if _ANY_BYTE.search(text):
        raise ValueError("error parsing regexp: invalid escape sequence: `\\C`")
    options = re2.Options()
    options.log_errors = False
    try:
        compiled: Regex = re2.compile(text, options)
    except re2.error as error:
        raise ValueError(f"error parsing regexp: {_in_go(error)}") from None
    except UnicodeEncodeError:
        raise ValueError("error parsing regexp: invalid UTF-8") from None
    return compiled


def _in_go(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    for words, go in _GO_WORDS.items():
        if text.startswith(words):
            argument = text[len(words) :].removeprefix(": ")
            return f"{go}: `{argument}`" if argument else go
    words, colon, argument = text.partition(": ")
    return f"{words}: `{argument}`" if colon else words
