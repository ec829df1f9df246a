"""Events: what happened to an object, counted when it happens again, and forgotten after an hour."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from gpuworkshop.lab.api.event_limits import COMBINED, Limits
from gpuworkshop.lab.api.kinds import EVENT
from gpuworkshop.lab.api.objects import Object, meta, name_of, namespace_of, seconds_of, timestamp
from gpuworkshop.lab.api.problems import ApiError

if TYPE_CHECKING:
    from gpuworkshop.lab.api.registry import Registry

KEPT_S = 3600.0
SWEEP_S = 60.0


class Recorder:
    """Records Events; those of objects of the whole cluster go to the namespace `default`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        # Those of an earlier run too, so that what happens again after a restart is counted.
        self._known = dict(map(_remembered, registry.list(EVENT)))
        self._limits = Limits()
        self._swept = registry.now()
        self._last = 0

    def record(self, about: Object, kind: str, reason: str, message: str, component: str, host: str) -> None:
        """Record it, unless there are too many, or its namespace goes, which are no errors."""
        now = self._registry.now()
        identity = (about["kind"], namespace_of(about), meta(about).get("uid", name_of(about)))
        source = (component, host, *identity)
        key: tuple[str, ...] = (*source, kind, reason)
        if self._limits.is_combined(key, message, now):
            message = COMBINED + message
        else:
            key = (*key, message)
        if not self._limits.allows(source, now):
            return
        # Telling of a thing is never worth to fail for: a namespace may be going, a disk be full.
        with suppress(ApiError):
            self._sweep()
            known = self._known.get(key)
            again = partial(self._again, message)
            if known is None or self._registry.modify(EVENT, *known, again) is None:
                event = self._event(about, kind, reason, message, component, host)
                created = self._registry.create(EVENT, event)
                self._known[key] = (namespace_of(created), name_of(created))

    def _again(self, message: str, event: Object) -> None:
        event["message"] = message
        event["count"] = int(event.get("count") or 1) + 1
        event["lastTimestamp"] = timestamp(self._registry.now())

    def _event(
        self, about: Object, kind: str, reason: str, message: str, component: str, host: str
    ) -> Object:
        now = timestamp(self._registry.now())
        involved = {
            "apiVersion": about["apiVersion"],
            "kind": about["kind"],
            "name": name_of(about),
            "namespace": namespace_of(about),
            "uid": meta(about).get("uid"),
            "resourceVersion": meta(about).get("resourceVersion"),
        }
        namespace = namespace_of(about) or "default"
        # As real names do, they sort in the order in which they came.
        self._last = max(self._last + 1, int(self._registry.now() * 1e9))
        return {
            "metadata": {"name": f"{name_of(about)}.{self._last:x}", "namespace": namespace},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": component, **({"host": host} if host else {})},
            "reportingComponent": component,
            "reportingInstance": host,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    def _sweep(self) -> None:
        now = self._registry.now()
        if now - self._swept < SWEEP_S:
            return
        self._swept = now
        self._limits.forget(now)
        for event in self._registry.list(EVENT):
            if now - seconds_of(event.get("lastTimestamp") or meta(event)["creationTimestamp"]) > KEPT_S:
                self._registry.delete(EVENT, namespace_of(event), name_of(event))
        alive = {(namespace_of(event), name_of(event)) for event in self._registry.list(EVENT)}
        self._known = {key: name for key, name in self._known.items() if name in alive}


def _remembered(event: Object) -> tuple[tuple[str, ...], tuple[str, str]]:
    """The key under which an Event that is there was recorded, and where it is."""
    about, source = event.get("involvedObject") or {}, event.get("source") or {}
    identity = (about.get("kind", ""), about.get("namespace", ""), about.get("uid", about.get("name", "")))
    where = (source.get("component", ""), source.get("host", ""))
    key = (*where, *identity, event.get("type", ""), event.get("reason", ""))
    message = str(event.get("message") or "")
    return (key if message.startswith(COMBINED) else (*key, message)), (namespace_of(event), name_of(event))
