"""What has changed, in order: the log that every watch reads, at its own pace.

A client's watch keeps a position, not a queue: one that falls behind by more than the log remembers is told
so, and lists again, as with a real API server. Parts of this process listen instead, and miss nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gpuworkshop.lab.api.objects import Object

KEPT = 8_192
Kind = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(slots=True)
class Change:
    """One change of one object; `previous` is what it was before. A deletion carries the last state."""

    type: Kind
    resource: str
    object: Object
    previous: Object | None
    revision: int
    encoded: bytes | None = field(default=None, compare=False)  # the JSON of `object`, made once for all


class ChangeLog:
    """The last `kept` changes."""

    def __init__(self, start: int, kept: int = KEPT) -> None:
        self._changes: list[Change] = []
        self._first = 0  # the position of the first change in the list
        self._forgotten = start  # every change up to this revision is forgotten
        self._kept = kept
        self._waiting: list[asyncio.Future[None]] = []
        self.listeners: set[Callable[[Change], None]] = set()

    def append(self, change: Change) -> None:
        """Add a change, and wake those who wait."""
        self._changes.append(change)
        if len(self._changes) > 2 * self._kept:
            gone = len(self._changes) - self._kept
            self._forgotten = self._changes[gone - 1].revision
            del self._changes[:gone]
            self._first += gone
        for listener in tuple(self.listeners):
            listener(change)
        self.wake()

    def wake(self) -> None:
        """Wake those who wait, for whatever reason."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    @property
    def end(self) -> int:
        """The position after the newest change."""
        return self._first + len(self._changes)

    def position_after(self, revision: int) -> int | None:
        """Where the changes after `revision` begin; None when they are not all remembered."""
        if revision < self._forgotten:
            return None
        low, high = 0, len(self._changes)
        while low < high:
            middle = (low + high) // 2
            if self._changes[middle].revision > revision:
                high = middle
            else:
                low = middle + 1
        return self._first + low

    def read(self, position: int) -> Sequence[Change] | None:
        """The changes from `position` on; None when some of them are forgotten."""
        if position < self._first:
            return None
        return self._changes[position - self._first :]

    def more(self) -> asyncio.Future[None]:
        """A future that is done when something is added from now on, or at `wake`."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future
