"""The frame of every controller: what to look at when something changes, and a queue that forgets nothing.

A controller names, for each kind that it watches, the keys to reconcile when an object of that kind changes.
`reconcile` looks at the cluster as it is now, and brings one key a step nearer to what is wanted: it is not
told what changed, so that it may miss, repeat or mix up nothing. It runs without interruption, and the loop
gives way to the API server between any two keys.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.listening import ObjectChange
from gpuworkshop.lab.api.objects import Object, controller_of, name_of, namespace_of
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry

log = logging.getLogger(__name__)

Key = tuple[str, ...]
Keys = Callable[[Registry, Object], Iterable[Key]]

FIRST_RETRY_S, LAST_RETRY_S = 0.05, 30.0
# After a look that took t seconds, changes alone bring the next one no sooner than t times this: a Service
# of a thousand pods that all become ready is written a few times, not a thousand.
REST = 4.0
WORTH_A_REST_S, LONGEST_REST_S = 0.01, 1.0
AT_ONCE = 100


class Controller:
    """One controller. A subclass names itself, says what it watches, and reconciles."""

    name: str
    watches: Mapping[Kind, Keys] = {}
    watches_all = False  # every kind, those of CRDs too: then `keys` is the subclass's own

    def keys(self, registry: Registry, change: ObjectChange) -> Iterable[Key]:
        """The keys to reconcile after a change: those of the object, and of what it was before."""
        found = self.watches[change.kind]
        yield from found(registry, change.object)
        if change.previous is not None and change.type == "MODIFIED":
            yield from found(registry, change.previous)

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Bring one key nearer to what is wanted; the seconds after which to look again, if at all."""
        raise NotImplementedError


def own_key(_: Registry, obj: Object) -> Iterable[Key]:
    """The key of the object itself."""
    yield namespace_of(obj), name_of(obj)


def key_of_controller(kind: Kind) -> Keys:
    """The key of the object's controller, where that is of `kind`."""

    def keys(_: Registry, obj: Object) -> Iterable[Key]:
        reference = controller_of(obj)
        if reference is not None and reference.get("kind") == kind.kind:
            yield namespace_of(obj), reference["name"]

    return keys


async def run_controllers(registry: Registry, controllers: Sequence[Controller]) -> None:
    """Run them until cancelled."""
    workers = [_Worker(registry, controller) for controller in controllers]
    async with asyncio.TaskGroup() as group:
        for worker in workers:
            group.create_task(worker.run(), name=worker.controller.name)
        with registry.changes() as changes:
            heard = 0
            async for change in changes:
                for worker in workers:
                    worker.hear(change)
                heard += 1
                if heard % AT_ONCE == 0:
                    await asyncio.sleep(0)


class _Queue:
    """Keys that wait, each once, with the time from which each may be taken."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._heap: list[tuple[float, int, Key]] = []
        self._order = itertools.count()
        self._more = asyncio.Event()

    def add(self, key: Key, at: float) -> None:
        """Have it taken at that time of the event loop's clock, or earlier if that was said before."""
        if at < self._due.get(key, float("inf")):
            self._due[key] = at
            heapq.heappush(self._heap, (at, next(self._order), key))
            self._more.set()

    async def take(self) -> Key:
        """The next key that is due."""
        loop = asyncio.get_running_loop()
        while True:
            while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
                heapq.heappop(self._heap)
            now = loop.time()
            if self._heap and self._heap[0][0] <= now:
                key = heapq.heappop(self._heap)[2]
                del self._due[key]
                return key
            self._more.clear()
            timer = loop.call_at(self._heap[0][0], self._more.set) if self._heap else None
            try:
                await self._more.wait()
            finally:
                if timer:
                    timer.cancel()


class _Worker:
    def __init__(self, registry: Registry, controller: Controller) -> None:
        self.controller = controller
        self._registry = registry
        self._queue = _Queue()
        self._failures: dict[Key, int] = {}
        self._rests: dict[Key, float] = {}

    def hear(self, change: ObjectChange) -> None:
        controller = self.controller
        if not controller.watches_all and change.kind not in controller.watches:
            return
        try:
            keys = set(controller.keys(self._registry, change))
        except Exception:
            log.exception("%s cannot tell what %s concerns", controller.name, change.kind.resource)
            return
        now = asyncio.get_running_loop().time()
        for key in keys:
            self._queue.add(key, max(now, self._rests.get(key, now)))

    async def run(self) -> None:
        while True:
            self._look(await self._queue.take())
            await asyncio.sleep(0)

    def _look(self, key: Key) -> None:
        loop = asyncio.get_running_loop()
        start, rest = loop.time(), 0.0
        try:
            again = self.controller.reconcile(self._registry, key)
            self._failures.pop(key, None)
        except Exception as error:  # noqa: BLE001  one key's trouble must not end the controller
            again = self._back_off(key, error)
            rest = min(again, LONGEST_REST_S)  # what the failure itself wrote must not bring the next one
        now = loop.time()
        rest = max(rest, REST * (now - start))
        self._rests.pop(key, None)
        if rest > WORTH_A_REST_S:
            self._rests[key] = now + rest
        if again is not None:
            self._queue.add(key, now + again)

    def _back_off(self, key: Key, error: Exception) -> float:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        words = (self.controller.name, "/".join(key))
        if isinstance(error, ApiError):
            log.log(logging.DEBUG if error.code == 409 else logging.INFO, "%s: %s: %s", *words, error)
        else:
            log.error("%s: %s", *words, exc_info=error)
        return min(FIRST_RETRY_S * 2.0 ** min(failures - 1, 16), LAST_RETRY_S)
