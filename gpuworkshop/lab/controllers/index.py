"""The cluster's objects by owner, namespace, node and image, so that no controller reads through all of them.

It listens to the store itself, within the very write, and so is never behind what the registry says.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from gpuworkshop.lab.api.changes import Change
from gpuworkshop.lab.api.kinds import POD, Kind
from gpuworkshop.lab.api.objects import Object, controller_of, meta, name_of, namespace_of, uid_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.store import Store
from gpuworkshop.lab.controllers.requests import pod_requests

Derived = TypeVar("Derived")
Requests = Mapping[str, Decimal]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
Entry = tuple[str, Object]  # the resource, such as `deployments.apps`, and the object

_indices: WeakKeyDictionary[Store, Index] = WeakKeyDictionary()


def index_of(registry: Registry) -> Index:
    """The registry's index, made when it is first asked for."""
    found = _indices.get(registry.store)
    if found is None:
        found = _indices[registry.store] = Index(registry.store)
    return found


class Index:
    """What is asked of many objects at once. What it hands out is shared, as are the objects."""

    def __init__(self, store: Store) -> None:
        self._by_uid: dict[str, Entry] = {}
        self._dependents: defaultdict[str, dict[str, Entry]] = defaultdict(dict)
        self._orphans: defaultdict[tuple[str, str], dict[str, Object]] = defaultdict(dict)
        self._within: defaultdict[tuple[str, str], dict[str, Object]] = defaultdict(dict)
        self._on_node: defaultdict[str, dict[str, Object]] = defaultdict(dict)
        self._requested: defaultdict[str, dict[str, Decimal]] = defaultdict(dict)
        self._siblings: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._exclusive: dict[str, Object] = {}
        self._with_image: defaultdict[str, dict[str, Object]] = defaultdict(dict)
        self._derived: defaultdict[str, dict[Callable[[Object], Any], Any]] = defaultdict(dict)
        for resource, obj in store.everything():
            self._add(resource, obj)
        store.log.listeners.add(self._hear)

    def with_uid(self, uid: str) -> Entry | None:
        """The object with that UID, wherever it is."""
        return self._by_uid.get(uid)

    def dependents(self, uid: str) -> list[Entry]:
        """The objects that name the object with that UID as an owner."""
        return list(self._dependents[uid].values()) if uid in self._dependents else []

    def controlled(self, kind: Kind, owner: Object) -> list[Object]:
        """The objects of a kind whose controller `owner` is."""
        uid = uid_of(owner)
        return [
            obj
            for resource, obj in self.dependents(uid)
            if resource == kind.resource and (controller_of(obj) or {}).get("uid") == uid
        ]

    def orphans(self, kind: Kind, namespace: str) -> list[Object]:
        """The objects of a kind in a namespace that have no controller."""
        return list(self._orphans[kind.resource, namespace].values())

    def within(self, kind: Kind, namespace: str) -> list[Object]:
        """The objects of a kind in a namespace, in no particular order."""
        return list(self._within[kind.resource, namespace].values())

    def on_node(self, node: str) -> list[Object]:
        """The pods that are bound to a node."""
        return list(self._on_node[node].values())

    def requested(self, node: str) -> Requests:
        """What the pods of a node ask for that have not ended; `pods` is how many they are."""
        return self._requested[node]

    def siblings(self, node: str, controller: str) -> int:
        """How many of the controller with that UID's pods are bound to the node, and have not ended."""
        return self._siblings[node][controller]

    def exclusive(self) -> Iterable[Object]:
        """The pods that are bound to a node and keep other pods off it by anti-affinity."""
        return self._exclusive.values()

    def with_image(self, name: str) -> list[Object]:
        """The pods with a container whose image is called that, whatever its registry and tag."""
        return list(self._with_image[name].values()) if name in self._with_image else []

    def derived(self, obj: Object, function: Callable[[Object], Derived]) -> Derived:
        """`function(obj)`, worked out once for each version of an object."""
        uid = uid_of(obj)
        if self._by_uid.get(uid, ("", None))[1] is not obj:
            return function(obj)
        known = self._derived[uid]
        if function not in known:
            known[function] = function(obj)
        value: Derived = known[function]
        return value

    def _hear(self, change: Change) -> None:
        if change.previous is not None:
            self._discard(change.resource, change.previous)
        if change.type != "DELETED":
            self._add(change.resource, change.object)

    def _add(self, resource: str, obj: Object) -> None:
        uid, namespace = uid_of(obj), namespace_of(obj)
        self._by_uid[uid] = (resource, obj)
        self._within[resource, namespace][name_of(obj)] = obj
        for reference in meta(obj).get("ownerReferences") or ():
            self._dependents[reference["uid"]][uid] = (resource, obj)
        if controller_of(obj) is None:
            self._orphans[resource, namespace][uid] = obj
        if resource == POD.resource:
            for image in _images(obj):
                self._with_image[image][uid] = obj
            if node := obj["spec"].get("nodeName"):
                self._bind(uid, obj, node)

    def _bind(self, uid: str, pod: Object, node: str) -> None:
        self._on_node[node][uid] = pod
        if _is_finished(pod):
            return
        requested = self._requested[node]
        for name, amount in pod_requests(pod).items():
            requested[name] = requested.get(name, Decimal()) + amount
        self._siblings[node][(controller_of(pod) or {}).get("uid", "")] += 1
        if ((pod["spec"].get("affinity") or {}).get("podAntiAffinity") or {}).get(REQUIRED):
            self._exclusive[uid] = pod

    def _discard(self, resource: str, obj: Object) -> None:
        uid, namespace = uid_of(obj), namespace_of(obj)
        self._by_uid.pop(uid, None)
        self._within[resource, namespace].pop(name_of(obj), None)
        self._orphans[resource, namespace].pop(uid, None)
        self._derived.pop(uid, None)
        for reference in meta(obj).get("ownerReferences") or ():
            self._dependents[reference["uid"]].pop(uid, None)
            if not self._dependents[reference["uid"]]:
                del self._dependents[reference["uid"]]
        if resource == POD.resource:
            for image in _images(obj):
                self._with_image[image].pop(uid, None)
            if node := obj["spec"].get("nodeName"):
                self._unbind(uid, obj, node)

    def _unbind(self, uid: str, pod: Object, node: str) -> None:
        self._on_node[node].pop(uid, None)
        self._exclusive.pop(uid, None)
        if not _is_finished(pod):
            requested = self._requested[node]
            for name, amount in pod_requests(pod).items():
                requested[name] -= amount
            self._siblings[node][(controller_of(pod) or {}).get("uid", "")] -= 1


def image_name(container: Mapping[str, Any]) -> str:
    """What a container's image is called, without its registry, tag and digest."""
    return str(container.get("image") or "").rsplit("/", 1)[-1].split(":")[0].split("@")[0]


def _images(pod: Object) -> set[str]:
    return {image_name(container) for container in pod["spec"].get("containers") or ()}


def _is_finished(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
