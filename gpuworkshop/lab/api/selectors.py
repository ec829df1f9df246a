"""Selectors: what `labelSelector` and `fieldSelector` of a request select.

Each becomes a predicate once, which is then asked for every object. The grammar of labels is a small
recursive descent; its refusals are those of the real API server, since kubectl passes them on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from gpuworkshop.lab.api import field_labels
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError, bad_request
from gpuworkshop.lab.api.requirements import EXACT, SET, Requirement

Labels = Mapping[str, str]
_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_OPERATORS = {"<": "lt", ">": "gt", **{word: word for word in (*SET, *EXACT)}}
_NO_IDENTIFIER = ("", "=", "==", "!=", "!", "<", ">", "(", ")", ",")
_FIELD_TERM = re.compile(r"((?:[^=!\\]|\\.)*?)(==|!=|=)(.*)", re.DOTALL)


def label_selector(text: str) -> Callable[[Labels], bool]:
    """The predicate on labels of a query's labelSelector; ApiError 400 when it makes no sense."""
    return _all_of(requirements(text))


def requirements(text: str) -> list[Requirement]:
    """What the text of a label selector requires."""
    return _Parser(text).requirements()


def field_selector(kind: Kind, text: str) -> Callable[[Object], bool]:
    """The predicate on objects of a query's fieldSelector; ApiError 400 for a field that is not supported."""
    terms = [_field_term(kind, term, text) for term in _split(text)]
    return lambda obj: all((read(obj) == value) is equal for read, value, equal in terms)


def _all_of(wanted: list[Requirement]) -> Callable[[Labels], bool]:
    if not wanted:
        return lambda _: True
    return lambda labels: all(requirement.matches(labels) for requirement in wanted)


class _Parser:
    """Reads the tokens of one selector; the last token is "", the end of the text."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), ""]
        self._at = 0

    @property
    def _next(self) -> str:
        return self._tokens[self._at]

    def _take(self) -> str:
        token = self._next
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        if self._next and self._next != "!" and self._next in _NO_IDENTIFIER:
            raise _found(self._next, "!, identifier, or 'end of string'")
        while self._next:
            found.append(self._requirement())
            if not (separator := self._take()):
                break
            if separator != ",":
                raise _found(separator, "',' or 'end of string'")
            if self._next != "!" and self._next in _NO_IDENTIFIER:
                raise _found(self._next, "identifier after ','")
        return found

    def _requirement(self) -> Requirement:
        negated = self._next == "!"
        if negated:
            self._take()
        key = self._identifier("identifier")
        if negated or self._next in ("", ","):
            return _checked(Requirement(key, "!" if negated else "exists"))
        operator = _OPERATORS.get(token := self._take())
        if operator is None:
            raise _unparsable(f"found '{token}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if operator in SET else frozenset([self._exact_value()])
        return _checked(Requirement(key, operator, values))

    def _exact_value(self) -> str:
        return "" if self._next in ("", ",") else self._identifier("identifier")

    def _values(self) -> frozenset[str]:
        """`(a,b)`; a value left out, as in `(a,)`, is the empty one."""
        if (token := self._take()) != "(":
            raise _unparsable(f"found '{token}' expected: '('")
        if self._next == ")":
            self._take()
            return frozenset()
        values = set()
        while True:
            values.add("" if self._next in (",", ")") else self._identifier("',', ')' or identifier"))
            separator = self._take()
            if separator == ")":
                return frozenset(values)
            if separator != ",":
                raise _unparsable(f"found '{separator}', expected: ',' or ')'")

    def _identifier(self, expected: str) -> str:
        token = self._take()
        if token in _NO_IDENTIFIER:
            raise _unparsable(f"found '{token}', expected: {expected}")
        return token


def _checked(requirement: Requirement) -> Requirement:
    if fault := requirement.fault():
        raise _unparsable(fault)
    return requirement


def _found(token: str, expected: str) -> ApiError:
    return bad_request(f"found '{token}', expected: {expected}")


def _unparsable(why: str) -> ApiError:
    return bad_request(f"unable to parse requirement: {why}")


def _split(text: str) -> list[str]:
    """The terms of a field selector; a comma behind a backslash belongs to a value."""
    return [term for term in re.findall(r"(?:[^,\\]|\\.|\\$)+", text) if term]


def _field_term(kind: Kind, term: str, text: str) -> tuple[Callable[[Object], str], str, bool]:
    """How to read the field, the value that it is compared with, and whether they are to be equal."""
    parts = _FIELD_TERM.fullmatch(term)
    if parts is None:
        raise bad_request(f"invalid selector: '{text}'; can't understand '{term}'")
    label, operator, value = parts.groups()
    if re.search(r"(?<!\\)(?:\\\\)*[=]", value):
        raise bad_request(f"invalid field selector: unescaped character in value: '{value}'")
    return field_labels.reader(kind, label), re.sub(r"\\(.)", r"\1", value), operator != "!="
