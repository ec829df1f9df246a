"""How many Events an object may cause, by the rules of the real clients: else ten thousand pods make as many.

Events that differ in their message alone are combined from the tenth on; and each source may tell only so
much of one object: a burst, then one more every five minutes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

SIMILAR, SIMILAR_S = 10, 600.0
BURST, ONE_MORE_S = 25, 300.0
COMBINED = "(combined from similar events): "


@dataclass
class _Similar:
    """The messages of Events that differ in nothing else, and when the last one came."""

    last: float
    messages: set[str] = field(default_factory=set)


@dataclass
class _Bucket:
    """How many more Events a source may tell of an object, as of a time."""

    at: float
    left: float = BURST


class Limits:
    """What one recorder has seen of late."""

    def __init__(self) -> None:
        self._similar: dict[Hashable, _Similar] = {}
        self._buckets: dict[Hashable, _Bucket] = {}

    def is_combined(self, sort: Hashable, message: str, now: float) -> bool:
        """Whether an Event of that sort is one of too many whose messages differ."""
        found = self._similar.get(sort)
        if found is None or now - found.last > SIMILAR_S:
            found = self._similar[sort] = _Similar(now)
        found.last = now
        if len(found.messages) < SIMILAR:
            found.messages.add(message)
        return len(found.messages) >= SIMILAR

    def allows(self, source: Hashable, now: float) -> bool:
        """Whether that source may tell one more of its object; this one is counted."""
        bucket = self._buckets.setdefault(source, _Bucket(now))
        bucket.left = min(BURST, bucket.left + (now - bucket.at) / ONE_MORE_S)
        bucket.at = now
        if bucket.left < 1:
            return False
        bucket.left -= 1
        return True

    def forget(self, now: float) -> None:
        """Drop what no longer limits anything."""
        self._similar = {key: kept for key, kept in self._similar.items() if now - kept.last <= SIMILAR_S}
        self._buckets = {
            key: kept
            for key, kept in self._buckets.items()
            if kept.left + (now - kept.at) / ONE_MORE_S < BURST
        }
