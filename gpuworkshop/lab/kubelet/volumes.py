"""What a pod's volumes hold: the files of ConfigMaps, Secrets, the downward API and tokens.

Nothing is written here. What is missing raises `Missing` with the real kubelet's words.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpuworkshop.lab.api.kinds import CONFIG_MAP, SECRET, SERVICE_ACCOUNT, Kind
from gpuworkshop.lab.api.objects import Object, annotations_of, labels_of, meta, namespace_of
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.kubelet.resources import resource_of

_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class Missing(Exception):
    """Something that the pod refers to is not there (yet)."""


@dataclass(frozen=True)
class File:
    """One file of a volume."""

    data: bytes
    mode: int = 0o644


@dataclass(frozen=True)
class Content:
    """A volume's files by their path in it. Where it `keeps_others`, the files are the container's own."""

    files: Mapping[str, File] = field(default_factory=dict)
    keeps_others: bool = False


class PodTokens(Protocol):
    """Has the tokens of pods."""

    def token(self, account: Object, pod: Object, audience: str, expiration_s: int | None) -> str:
        """A token of the account that is good as long as the pod is there."""


@dataclass(frozen=True)
class Sources:
    """Where the contents of volumes and variables come from.

    Without `tokens` none is issued: enough to find out whether everything is there.
    """

    registry: Registry
    tokens: PodTokens | None

    def data(self, kind: Kind, pod: Object, name: str) -> dict[str, bytes]:
        """The data of a ConfigMap or Secret in the pod's namespace."""
        found = self.registry.find(kind, namespace_of(pod), name)
        if found is None:
            raise Missing(f'{kind.singular} "{name}" not found')
        encoded = {key: base64.b64decode(text) for key, text in (found.get("binaryData") or {}).items()}
        if kind is SECRET:
            return {key: base64.b64decode(text) for key, text in (found.get("data") or {}).items()}
        return {key: text.encode() for key, text in (found.get("data") or {}).items()} | encoded

    def token(self, pod: Object, source: Mapping[str, Any]) -> str:
        """A token of the pod's service account that does not expire soon."""
        name = pod["spec"].get("serviceAccountName") or "default"
        account = self.registry.find(SERVICE_ACCOUNT, namespace_of(pod), name)
        if account is None:
            raise Missing(f'failed to fetch token: serviceaccounts "{name}" not found')
        if self.tokens is None:
            return ""
        return self.tokens.token(account, pod, source.get("audience", ""), source.get("expirationSeconds"))


def content_of(volume: Mapping[str, Any], pod: Object, sources: Sources) -> Content:
    """What a volume holds now. A kind that the lab does not have, such as hostPath, is an empty folder.

    Raises Missing.
    """
    if (projected := volume.get("projected")) is not None:
        mode = projected.get("defaultMode", 0o644)
        files: dict[str, File] = {}
        for source in projected.get("sources") or []:
            files.update(_files(source, mode, pod, sources))
        return Content(files)
    if {"configMap", "secret", "downwardAPI"} & set(volume):
        return Content(dict(_files(volume, None, pod, sources)))
    return Content(keeps_others=True)


def _files(
    source: Mapping[str, Any], mode: int | None, pod: Object, sources: Sources
) -> Iterator[tuple[str, File]]:
    if config := source.get("configMap"):
        yield from _keys(CONFIG_MAP, config, config.get("name", ""), mode, pod, sources)
    elif secret := source.get("secret"):
        name = secret.get("secretName") or secret.get("name", "")
        for path, file in _keys(SECRET, secret, name, mode, pod, sources):
            yield path, File(file.data, file.mode & 0o700)  # other users of this machine are nobody's pod
    elif downward := source.get("downwardAPI"):
        for item in downward.get("items") or []:
            text = _downward(item, pod)
            yield item["path"], File(text.encode(), item.get("mode", mode or 0o644))
    elif token := source.get("serviceAccountToken"):
        yield token["path"], File(sources.token(pod, token).encode(), 0o600)


def _keys(
    kind: Kind, source: Mapping[str, Any], name: str, mode: int | None, pod: Object, sources: Sources
) -> Iterator[tuple[str, File]]:
    default = source.get("defaultMode", 0o644) if mode is None else mode
    try:
        data = sources.data(kind, pod, name)
    except Missing:
        if source.get("optional"):
            return
        raise
    items = source.get("items") or [{"key": key, "path": key} for key in data]
    for item in items:
        if item["key"] in data:
            yield item["path"], File(data[item["key"]], item.get("mode", default))
        elif not source.get("optional"):
            raise Missing(f"references non-existent {kind.singular} key: {item['key']}")


def _downward(item: Mapping[str, Any], pod: Object) -> str:
    if reference := item.get("resourceFieldRef"):
        return resource_of(pod, reference, reference.get("containerName", ""))
    return field_of(pod, item["fieldRef"]["fieldPath"])


def field_of(pod: Object, path: str) -> str:
    """A field of the pod by the downward API's path, such as `metadata.labels['app']`; "" if not set."""
    if keyed := _KEYED.fullmatch(path):
        found = labels_of(pod) if keyed[1] == "labels" else annotations_of(pod)
        return found.get(keyed[2], "")
    if path in ("metadata.labels", "metadata.annotations"):
        found = meta(pod).get(path.removeprefix("metadata.")) or {}
        return "".join(f'{key}="{value}"\n' for key, value in sorted(found.items()))
    value: Any = pod
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if path in ("status.podIPs", "status.hostIPs"):
        return ",".join(each["ip"] for each in value or [])
    return "" if value is None else str(value)
