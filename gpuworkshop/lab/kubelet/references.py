"""Which pods of a node use which ConfigMap or Secret, so that a change costs nothing for all others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from gpuworkshop.lab.api.kinds import CONFIG_MAP, SECRET, Kind
from gpuworkshop.lab.api.objects import Object, namespace_of, uid_of
from gpuworkshop.lab.kubelet.resources import containers_of

Reference = tuple[Kind, str]


class References:
    """An index of pods by what they refer to."""

    def __init__(self) -> None:
        self._users: defaultdict[tuple[Kind, str, str], set[str]] = defaultdict(set)

    def add(self, pod: Object) -> None:
        """A pod has come; what it refers to never changes."""
        for kind, name in references_of(pod):
            self._users[kind, namespace_of(pod), name].add(uid_of(pod))

    def discard(self, pod: Object) -> None:
        """A pod has gone."""
        for kind, name in references_of(pod):
            key = (kind, namespace_of(pod), name)
            self._users[key].discard(uid_of(pod))
            if not self._users[key]:
                del self._users[key]

    def users(self, kind: Kind, namespace: str, name: str) -> list[str]:
        """The UIDs of the pods that refer to it."""
        return sorted(self._users.get((kind, namespace, name), ()))


def references_of(pod: Object) -> set[Reference]:
    """The ConfigMaps and Secrets in the pod's volumes and its containers' variables, by kind and name."""
    found = {each for container in containers_of(pod) for each in _in_variables(container)}
    return found | set(in_volumes(pod))


def in_volumes(pod: Object) -> Iterator[Reference]:
    """Those in the pod's volumes, which follow their changes."""
    for volume in pod["spec"].get("volumes") or []:
        for source in [volume, *((volume.get("projected") or {}).get("sources") or [])]:
            if config := source.get("configMap"):
                yield CONFIG_MAP, config.get("name", "")
            if secret := source.get("secret"):
                yield SECRET, secret.get("secretName") or secret.get("name", "")


_KEYS = {
    "configMapKeyRef": CONFIG_MAP,
    "configMapRef": CONFIG_MAP,
    "secretKeyRef": SECRET,
    "secretRef": SECRET,
}


def _in_variables(container: Mapping[str, Any]) -> Iterator[Reference]:
    sources = [entry.get("valueFrom") or {} for entry in container.get("env") or []]
    for source in [*sources, *(container.get("envFrom") or [])]:
        for key, kind in _KEYS.items():
            if reference := source.get(key):
                yield kind, reference.get("name", "")
