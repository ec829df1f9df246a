"""The pods of this node as the API server last told them: their UIDs, labels and containers.

Filled by `pod_watch`, read by the thread that samples; nothing here waits for anything. What was known of a
pod is kept for a minute after it is gone, since its processes may outlive it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuworkshop.exporter import pod_labels
from gpuworkshop.exporter.devices import Pod

KEPT_S = 60.0

# The UID that a static pod's groups are named after; the API server gives its copy another one.
_STATIC_UID = "kubernetes.io/config.hash"
_ENDED = ("Succeeded", "Failed")
_STATUSES = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")


@dataclass(frozen=True)
class Known:
    """A pod: `labels` as they are shown, `containers` the names by id, `ended`: it runs no more."""

    namespace: str
    name: str
    uid: str
    static_uid: str
    labels: tuple[tuple[str, str], ...]
    containers: Mapping[str, str]
    ended: bool


class PodDirectory:
    """The pods of a node. `allowed` are the names of labels to show, with `*`; `show_uid` shows UIDs too.

    `clock` tells monotonic seconds.
    """

    def __init__(
        self,
        allowed: Sequence[str] = (),
        *,
        show_uid: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._allowed = tuple(allowed)
        self._show_uid = show_uid
        self._clock = clock
        self._lock = threading.Lock()
        self._pods: dict[str, Known] = {}
        self._left: dict[str, tuple[float, Known]] = {}
        self._by_uid: dict[str, Known] = {}
        self._by_name: dict[tuple[str, str], Known] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def replace(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """These are all pods of the node."""
        known = {each.uid: each for each in map(self._read, pods)}
        with self._lock:
            for uid in set(self._pods) - set(known):
                self._leave(uid)
            self._pods = known
            self._index()

    def put(self, pod: Mapping[str, Any]) -> None:
        """A pod is new, or has changed."""
        known = self._read(pod)
        with self._lock:
            self._pods[known.uid] = known
            self._index()

    def remove(self, pod: Mapping[str, Any]) -> None:
        """A pod is gone."""
        known = self._read(pod)
        with self._lock:
            self._pods[known.uid] = known
            self._leave(known.uid)
            self._index()

    def of_process(self, uid: str, container_id: str) -> Pod | None:
        """The pod of that UID (of its groups) and its container of that id; None for an unknown pod."""
        known = self._by_uid.get(uid)
        return (
            Pod(known.namespace, known.name, known.containers.get(container_id, ""), uid=known.uid)
            if known
            else None
        )

    def shown(self, pod: Pod) -> Pod | None:
        """The pod with the labels, and the UID, that are to be shown; None if it has ended."""
        known = self._by_uid.get(pod.uid) or self._by_name.get((pod.namespace, pod.pod))
        if known is None:
            return replace(pod, uid=pod.uid if self._show_uid else "")
        if known.ended:
            return None
        return replace(pod, uid=known.uid if self._show_uid else "", labels=known.labels)

    def _leave(self, uid: str) -> None:
        self._left[uid] = self._clock(), self._pods.pop(uid)

    def _index(self) -> None:
        """Make the indexes anew; readers have the old ones until then."""
        now = self._clock()
        self._left = {
            uid: left for uid, left in self._left.items() if now - left[0] <= KEPT_S and uid not in self._pods
        }
        # The present ones last, so that a new pod of a name comes before the one that has left it.
        every = [*(known for _, known in self._left.values()), *self._pods.values()]
        by_uid = {known.static_uid: known for known in every if known.static_uid}
        self._by_uid = by_uid | {known.uid: known for known in every}
        self._by_name = {(known.namespace, known.name): known for known in every}

    def _read(self, pod: Mapping[str, Any]) -> Known:
        about, status = pod.get("metadata") or {}, pod.get("status") or {}
        return Known(
            namespace=str(about["namespace"]),
            name=str(about["name"]),
            uid=str(about["uid"]),
            static_uid=str((about.get("annotations") or {}).get(_STATIC_UID, "")),
            labels=pod_labels.chosen(about.get("labels") or {}, self._allowed),
            containers={
                # Written `containerd://<id>`.
                str(each["containerID"]).rpartition("/")[2]: str(each["name"])
                for kind in _STATUSES
                for each in status.get(kind) or []
                if each.get("containerID")
            },
            ended=status.get("phase") in _ENDED,
        )
