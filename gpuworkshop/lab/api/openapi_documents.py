"""The OpenAPI documents of a registry's kinds, made once and again when a CRD comes, changes or goes."""

from __future__ import annotations

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
    parts = path.strip("/").split("/")[1:]
    if not parts or parts[0] != "v3":
        return None
    salt = ",".join(crd["metadata"]["resourceVersion"] for crd in registry.list(CRD))
    known_salt, documents = _made.get(registry, ("", {}))
    if known_salt != salt or registry not in _made:
        documents = {}
        _made[registry] = (salt, documents)
    if path not in documents:
        documents[path] = _document(registry, parts[1:], salt)
    return documents[path]


def _document(registry: Registry, parts: list[str], salt: str) -> Document | None:
    if not parts:
        return openapi.root(registry.kinds, salt)
    if parts[0] == "api" and len(parts) == 2:
        return openapi.document(registry.kinds, "", parts[1], {})
    if parts[0] == "apis" and len(parts) == 3:
        kinds = [k for k in registry.kinds if (k.group, k.version) == (parts[1], parts[2])]
        schemas = {k.plural: custom.schema(registry, k) or {} for k in kinds if not k.message}
        return openapi.document(kinds, parts[1], parts[2], schemas)
    return None
