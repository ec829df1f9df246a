"""Events: what happened to an object, counted when it happens again, and forgotten after an hour."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        self._known: dict[tuple[str, ...], tuple[str, str]] = {}
        self._swept = registry.now()
        self._last = 0

    def record(self, about: Object, kind: str, reason: str, message: str, component: str, host: str) -> None:
        """Record it; while a namespace goes, nothing can be recorded there, which is no error."""
        self._sweep()
        identity = (about["kind"], namespace_of(about), meta(about).get("uid", name_of(about)))
        key = (*identity, reason, message, component, host)
        known = self._known.get(key)
        if known is None or self._registry.modify(EVENT, *known, self._again) is None:
            try:
                created = self._registry.create(
                    EVENT, self._event(about, kind, reason, message, component, host)
                )
            except ApiError:
                return
            self._known[key] = (namespace_of(created), name_of(created))

    def _again(self, event: Object) -> None:
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
        for event in self._registry.list(EVENT):
            if now - seconds_of(event.get("lastTimestamp") or meta(event)["creationTimestamp"]) > KEPT_S:
                self._registry.delete(EVENT, namespace_of(event), name_of(event))
        alive = {(namespace_of(event), name_of(event)) for event in self._registry.list(EVENT)}
        self._known = {key: name for key, name in self._known.items() if name in alive}
