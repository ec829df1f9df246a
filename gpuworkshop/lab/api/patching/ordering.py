"""The order of a list that two sides make: the items of a patch in its order, the live ones between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def in_order(merged: Sequence[Any], wanted: Sequence[Any], live: Sequence[Any], key: str = "") -> list[Any]:
    """`merged` in the order that strategic merge patch gives it. With `key`, that field tells items apart.

    The items in `wanted` have its order, the others that of `live`. Each of the others comes before the
    first of the wanted that it preceded in `live`, and so behind any that are new.
    """
    identity = _identity(key)
    order = [identity(item) for item in wanted]
    before = [identity(item) for item in live]
    named = sorted((i for i in merged if identity(i) in order), key=lambda item: order.index(identity(item)))
    others = sorted(
        (i for i in merged if identity(i) not in order),
        key=lambda item: before.index(identity(item)) if identity(item) in before else len(before),
    )
    placed: list[Any] = []
    while named and others:
        left, right = identity(others[0]), identity(named[0])
        precedes = left in before and right in before and before.index(left) < before.index(right)
        placed.append((others if precedes else named).pop(0))
    return [*placed, *named, *others]


def interleaved(live: Sequence[str], applied: Sequence[str]) -> list[str]:
    """The items of both, in the order that server-side apply gives them.

    Those applied have the order of `applied`; each that is only in `live` follows what it followed there, as
    far as that allows.
    """
    shared, rest = [item for item in applied if item in set(live)], list(applied)
    ordered: list[str] = []
    for item in live:
        if item not in applied:
            ordered.append(item)
        elif shared and item == shared[0]:
            end = rest.index(item) + 1
            ordered += rest[:end]
            del rest[:end], shared[0]
    return ordered + rest


def _identity(key: str) -> Callable[[Any], Any]:
    return (lambda item: item.get(key) if isinstance(item, dict) else item) if key else (lambda item: item)
