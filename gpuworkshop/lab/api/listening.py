"""How a part of this process follows what changes: everything that exists first, then each change."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

from gpuworkshop.lab.api.changes import Change
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object

if TYPE_CHECKING:
    from gpuworkshop.lab.api.registry import Registry


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """A change of an object; what exists at the start is ADDED."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: Kind
    object: Object
    previous: Object | None


class Changes:
    """An asynchronous iterator over changes, which never ends; none is missed within the `with`."""

    def __init__(self, registry: Registry, kinds: Sequence[Kind]) -> None:
        self._registry = registry
        self._kinds = {kind.resource: kind for kind in kinds}
        self._queue: deque[ObjectChange] = deque()
        self._more = asyncio.Event()

    def __enter__(self) -> Self:
        for kind in self._kinds.values() or self._registry.kinds:
            if kind.stored:
                self._queue.extend(
                    ObjectChange("ADDED", kind, obj, None) for obj in self._registry.list(kind)
                )
        self._registry.store.log.listeners.add(self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        self._registry.store.log.listeners.discard(self._hear)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ObjectChange:
        while not self._queue:
            self._more.clear()
            await self._more.wait()
        return self._queue.popleft()

    def _hear(self, change: Change) -> None:
        kind = self._kinds.get(change.resource) if self._kinds else self._kind_of(change)
        if kind is not None:
            self._queue.append(ObjectChange(change.type, kind, change.object, change.previous))
            self._more.set()

    def _kind_of(self, change: Change) -> Kind | None:
        return self._registry.kinds.of(change.object["apiVersion"], change.object["kind"])
