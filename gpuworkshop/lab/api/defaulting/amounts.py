"""Lists of resources, such as `limits`: each quantity in its canonical form, rounded up to a thousandth."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from functools import lru_cache

from gpuworkshop.lab.api.quantities import canonical, format_quantity, parse
from gpuworkshop.lab.api.shapes import Mapping, mapping

_THOUSANDTH = Decimal("0.001")


def tidy(obj: Mapping, *keys: str) -> None:
    """Put the quantities of the list at `keys` into canonical form; validation sees what is no quantity."""
    listed = mapping(obj, *keys)
    for name, value in listed.items():
        if type(value) in (str, int, float):
            listed[name] = _tidied(value)


def tidy_one(obj: Mapping, key: str) -> None:
    """Put the quantity at `key` into canonical form."""
    if type(obj.get(key)) in (str, int, float):
        try:
            obj[key] = canonical(obj[key])
        except ValueError:
            return


@lru_cache(maxsize=1024, typed=True)
def _tidied(value: str | int | float) -> str | int | float:
    try:
        exact = parse(value)
    except ValueError:
        return value
    if exact == exact.to_integral_value():
        return canonical(value)
    rounded = exact.quantize(_THOUSANDTH, rounding=ROUND_CEILING)
    return format_quantity(rounded, str(value))
