"""Quantities of resources, such as `100m`, `1.5Gi` or `2e3`: exact numbers, and the one way to write each.

The API server writes every quantity in its canonical form: the largest suffix that leaves a whole number, in
the family (binary, decimal, exponent) in which it was given: `0.5` comes back as `500m`, `1024Mi` as `1Gi`.
"""

from __future__ import annotations

import re
from decimal import ROUND_UP, Context, Decimal
from functools import lru_cache

PATTERN = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"  # as the API server quotes it in its errors

_BINARY = {
    suffix: Decimal(1024**power) for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)
}
_DECIMAL = {
    suffix: Decimal(1).scaleb(3 * power)
    for power, suffix in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"), -3)
}
_SUFFIXES = {**_DECIMAL, **_BINARY}
_FORM = re.compile(
    r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,9}|)", re.ASCII
)
_LARGEST = Decimal(2**63 - 1)
_NANO = Decimal("1e-9")
_LONGEST = 256  # characters; a longer number is a mistake, and would only cost time
_EXACT = Context(prec=1024, traps=[])


def parse(text: str | int | float) -> Decimal:
    """The exact value, rounded up to a billionth and capped at 2**63 - 1 as by the API server.

    Raises ValueError, in the API server's words, for what is no quantity.
    """
    return _parsed(text if isinstance(text, str) else _written(text))[0]


def canonical(text: str | int | float) -> str:
    """The same quantity as the API server writes it. Raises ValueError for what is no quantity."""
    return _canonical(text if isinstance(text, str) else _written(text))


def format_quantity(value: Decimal | int, like: str = "") -> str:
    """A number as a quantity, in the family of `like`: binary after `1Gi`, decimal after `1k` or `1`."""
    return _format(Decimal(value), _parsed(like)[1] if like else "")


def _written(number: object) -> str:
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise _no_quantity()
    return str(number)


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    return _format(*_parsed(text))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Decimal, str]:
    """The value, and the family: "Ki", "e" or "" for decimal suffixes."""
    if len(text) > _LONGEST or (found := _FORM.fullmatch(text)) is None:
        raise _no_quantity()
    number, suffix = Decimal(found[1]), found[2]
    if suffix in _SUFFIXES:
        factor, family = _SUFFIXES[suffix], "Ki" if suffix in _BINARY else ""
    else:
        factor, family = Decimal(f"1{suffix}"), "e"
    return _bounded(_EXACT.multiply(number, factor)), family


def _bounded(value: Decimal) -> Decimal:
    if abs(value) >= _LARGEST:
        return _LARGEST.copy_sign(value)
    rounded = value.quantize(_NANO, rounding=ROUND_UP, context=_EXACT)
    return _EXACT.add(rounded.normalize(_EXACT), Decimal(0))


def _format(value: Decimal, family: str) -> str:
    if not value:
        return "0"
    if family == "Ki" and abs(value) >= 1024 and value == value.to_integral_value():
        return _binary(int(value))
    nanos = int(value.scaleb(9, _EXACT))
    power = -9
    while nanos % 1000 == 0:
        nanos, power = nanos // 1000, power + 3
    if family == "e":
        return f"{nanos}e{power}" if power else str(nanos)
    return f"{nanos}{next(suffix for suffix, factor in _DECIMAL.items() if factor.adjusted() == power)}"


def _binary(number: int) -> str:
    power = 0
    while number % 1024 == 0:
        number, power = number // 1024, power + 1
    return f"{number}{('', *_BINARY)[power]}"


def _no_quantity() -> ValueError:
    return ValueError(f"quantities must match the regular expression '{PATTERN}'")
