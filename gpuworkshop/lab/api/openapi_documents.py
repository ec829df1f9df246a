"""The OpenAPI documents of a registry's kinds, made once and again when a CRD comes, changes or goes."""

from __future__ import annotations

import hashlib
import json
from typing import Any
from weakref import WeakKeyDictionary

from gpuworkshop.lab.api import custom
from gpuworkshop.lab.api.kinds import CRD
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.wire import openapi

Document = dict[str, Any]
_made: WeakKeyDictionary[Registry, tuple[str, dict[str, Document | None]]] = WeakKeyDictionary()


def document(registry: Registry, path: str) -> Document | None:
    """What `/openapi/v3` and the paths below it answer; None for what is not there, such as version 2."""
    parts = path.strip("/").split("/")
    if parts[:2] != ["openapi", "v3"]:
        return None
    definitions = ",".join(crd["metadata"]["resourceVersion"] for crd in registry.list(CRD))
    made_of, documents = _made.get(registry, ("", {}))
    if made_of != definitions:
        documents = {}
    _made[registry] = (definitions, documents)
    if path not in documents:
        documents[path] = _document(registry, parts[2:])
    return documents[path]


def _document(registry: Registry, parts: list[str]) -> Document | None:
    match parts:
        case []:
            return openapi.root(registry.kinds, _digest(registry))
        case ["api", version]:
            return _of_version(registry, "", version)
        case ["apis", group, version] if group:
            return _of_version(registry, group, version)
    return None


def _of_version(registry: Registry, group: str, version: str) -> Document | None:
    kinds = [kind for kind in registry.kinds if (kind.group, kind.version) == (group, version)]
    schemas = {kind.plural: custom.schema(registry, kind) or {} for kind in kinds if not kind.message}
    return openapi.document(kinds, group, version, schemas)


def _digest(registry: Registry) -> str:
    """Of all that is said: kubectl keeps a document on disk, by host and hash, and never asks again."""
    versions = sorted({(kind.group, kind.version) for kind in registry.kinds})
    documents = [_of_version(registry, *version) for version in versions]
    return hashlib.sha256(json.dumps(documents).encode()).hexdigest()
