"""A watch: what exists, then each change, a JSON event a line, until the client or the time-out ends it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from aiohttp import web

from gpuworkshop.lab.api import problems
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
        self._bookmarks = _flag(request, "allowWatchBookmarks")
        self._initial = _flag(request, "sendInitialEvents")
        self._columns_sent = False
        self._check()
        seconds = int(self._query.get("timeoutSeconds") or 0)
        self._until = time.monotonic() + (seconds or random.randint(SHORTEST_S, LONGEST_S))  # noqa: S311

    def _check(self) -> None:
        if "sendInitialEvents" in self._query and self._query.get("resourceVersionMatch") != "NotOlderThan":
            message = (
                "sendInitialEvents: Forbidden: sendInitialEvents requires setting resourceVersionMatch to "
                "NotOlderThan"
            )
            raise problems.ApiError(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: {message}')
        for name in ("resourceVersion", "timeoutSeconds"):
            if (value := self._query.get(name) or "0") and not value.isdecimal():
                raise problems.bad_request(f"invalid {name}: {value!r} is no whole number")

    async def serve(self, request: web.Request, closing: asyncio.Event) -> web.StreamResponse:
        """Answer with the stream."""
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        lines, position = self._beginning()
        await response.write(b"".join(lines))
        try:
            while position is not None and await self._more(position, closing):
                changes = self._registry.store.log.read(position)
                if changes is None:
                    position = None
                    break
                position += len(changes)
                lines = [line for change in changes for line in self._lines(change)]
                if not changes and self._bookmarks:
                    lines = [self._bookmark({})]
                if lines:
                    await response.write(b"".join(lines))
            if position is None:
                await response.write(self._too_old())
            await response.write_eof()
        except ConnectionError:
            pass  # the client has gone, which is how most watches end
        return response

    async def _more(self, position: int, closing: asyncio.Event) -> bool:
        """Wait for a change, or the time of a bookmark; False when the watch is over."""
        log = self._registry.store.log
        left = self._until - time.monotonic()
        if closing.is_set() or left <= 0:
            return False
        if log.end > position:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(min(left, BOOKMARK_EVERY_S)):
                await log.more()
        return not closing.is_set() and (time.monotonic() < self._until or log.end > position)

    def _beginning(self) -> tuple[list[bytes], int | None]:
        """The lines for what exists, and the position in the log from which to go on."""
        log = self._registry.store.log
        version = int(self._query.get("resourceVersion") or 0)
        if version > self._registry.store.revision:
            return [self._error(_from_the_future(version, self._registry.store.revision))], log.end
        if version and not self._initial:
            return [], log.position_after(version)
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

    def _too_old(self) -> bytes:
        version = self._query.get("resourceVersion") or "0"
        return self._error(
            problems.expired(f"too old resource version: {version} ({self._registry.store.revision})")
        )

    def _error(self, error: problems.ApiError) -> bytes:
        return b'{"type":"ERROR","object":%s}\n' % encoded(error.status())


def _with_version(change: Change) -> Object:
    """The last state that matched, under the revision of the change that took it away."""
    if change.type == "DELETED" or change.previous is None:
        return change.object
    metadata = {**change.previous["metadata"], "resourceVersion": str(change.revision)}
    return {**change.previous, "metadata": metadata}


def _from_the_future(version: int, current: int) -> problems.ApiError:
    message = f"Timeout: Too large resource version: {version}, current: {current}"
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    return problems.ApiError(504, "Timeout", message, {**details, "retryAfterSeconds": 1})


def _flag(request: web.Request, name: str) -> bool:
    return request.query.get(name, "") in ("true", "1")
