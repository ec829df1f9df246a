"""A watch: what exists, then each change, a JSON event a line, until the client or the time-out ends it."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import web

from gpuworkshop.lab.api import options, problems
from gpuworkshop.lab.api.answers import Form, as_version
from gpuworkshop.lab.api.changes import Change
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object, encoded, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.tables import partial

BOOKMARK_EVERY_S = 60.0
SHORTEST_S, LONGEST_S = 1800, 3600
INITIAL_END = "k8s.io/initial-events-end"


@dataclass(frozen=True)
class Watched:
    """What a client watches, and in which form."""

    kind: Kind
    namespace: str
    matches: Callable[[Object], bool]
    form: Form


class Watch:
    """One client's watch of the registry's log."""

    def __init__(self, registry: Registry, watched: Watched, request: web.Request) -> None:
        self._registry, self._watched, self._query = registry, watched, request.query
        self._bookmarks = options.flag(request.query, "allowWatchBookmarks")
        self._initial = options.flag(request.query, "sendInitialEvents")
        self._columns_sent = False
        options.check_watch(request.query)
        self._version = options.whole_number(request.query, "resourceVersion")
        seconds = options.whole_number(request.query, "timeoutSeconds")
        self._until = time.monotonic() + (seconds or random.randint(SHORTEST_S, LONGEST_S))  # noqa: S311
        self._bookmark_at = self._next_bookmark()

    async def serve(self, request: web.Request, closing: asyncio.Event) -> web.StreamResponse:
        """Answer with the stream; what is wrong with where to begin is said in it."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        try:
            try:
                await self._send(response, closing)
            except problems.ApiError as error:
                await response.write(b'{"type":"ERROR","object":%s}\n' % encoded(error.status()))
            await response.write_eof()
        except ConnectionError:
            pass  # the client has gone, which is how most watches end
        return response

    async def _send(self, response: web.StreamResponse, closing: asyncio.Event) -> None:
        lines, position = self._beginning()
        await response.write(b"".join(lines))
        while await self._more(position, closing):
            changes = self._registry.store.log.read(position)
            if changes is None:
                raise self._too_old()
            position += len(changes)
            lines = [line for change in changes for line in self._lines(change)]
            if not lines and time.monotonic() >= self._bookmark_at:
                lines = [self._bookmark({})]
            if lines:
                self._bookmark_at = self._next_bookmark()
                await response.write(b"".join(lines))

    def _next_bookmark(self) -> float:
        return time.monotonic() + BOOKMARK_EVERY_S if self._bookmarks else math.inf

    async def _more(self, position: int, closing: asyncio.Event) -> bool:
        """Wait for a change, or the time of a bookmark; False when the watch is over."""
        log = self._registry.store.log
        now = time.monotonic()
        if closing.is_set() or now >= self._until:
            return False
        if log.end > position:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(self._until, self._bookmark_at) - now)):
                await log.more()
        return not closing.is_set() and (time.monotonic() < self._until or log.end > position)

    def _beginning(self) -> tuple[list[bytes], int]:
        """The lines for what exists, and the position in the log from which to go on.

        ApiError 410 where not all is remembered from there on, 504 for a version that is still to come.
        """
        log = self._registry.store.log
        if options.version_asked(self._registry, self._query) and not self._initial:
            if (position := log.position_after(self._version)) is None:
                raise self._too_old()
            return [], position
        lines = []
        if self._initial or "sendInitialEvents" not in self._query:
            watched = self._watched
            for obj in self._registry.list(watched.kind, watched.namespace):
                if watched.matches(obj):
                    lines.append(self._line("ADDED", obj, None))
        if self._initial:
            lines.append(self._bookmark({INITIAL_END: "true"}))
        return lines, log.end

    def _lines(self, change: Change) -> Iterator[bytes]:
        """What the client sees of a change: one that leaves the selection looks deleted to it."""
        watched = self._watched
        if change.resource != watched.kind.resource:
            return
        if watched.namespace and namespace_of(change.object) != watched.namespace:
            return
        was = change.previous is not None and watched.matches(change.previous)
        now = change.type != "DELETED" and watched.matches(change.object)
        if now:
            yield self._line("MODIFIED" if was else "ADDED", change.object, change)
        elif was:
            yield self._line("DELETED", _with_version(change), None)

    def _line(self, kind: str, obj: Object, change: Change | None) -> bytes:
        return b'{"type":"%s","object":%s}\n' % (kind.encode(), self._shaped(obj, change))

    def _shaped(self, obj: Object, change: Change | None) -> bytes:
        watched = self._watched
        if watched.form.asked == "Table":
            version = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            table = watched.form.table(self._registry, watched.kind, [obj], version)
            if self._columns_sent:
                table["columnDefinitions"] = []
            self._columns_sent = True
            return encoded(table)
        if watched.form.asked.startswith("PartialObjectMetadata"):
            return encoded(partial(obj))
        if change is not None and change.encoded and obj["apiVersion"] == watched.kind.api_version:
            return change.encoded
        return encoded(as_version(obj, watched.kind.api_version))

    def _bookmark(self, annotations: dict[str, str]) -> bytes:
        metadata: Object = {"resourceVersion": str(self._registry.store.revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        kind = self._watched.kind
        obj: Object = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        if self._watched.form.asked == "Table":
            table = {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": []}
            obj = {**table, "rows": [{"cells": [], "object": obj}]}
        return b'{"type":"BOOKMARK","object":%s}\n' % encoded(obj)

    def _too_old(self) -> problems.ApiError:
        current = self._registry.store.revision
        return problems.expired(f"too old resource version: {self._version} ({current})")


def _with_version(change: Change) -> Object:
    """The last state that matched, under the revision of the change that took it away."""
    if change.type == "DELETED" or change.previous is None:
        return change.object
    metadata = {**change.previous["metadata"], "resourceVersion": str(change.revision)}
    return {**change.previous, "metadata": metadata}
