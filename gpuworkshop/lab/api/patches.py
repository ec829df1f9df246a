"""A PATCH: the four forms in which a client says what to change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from gpuworkshop.lab.api import bodies, custom, options, problems
from gpuworkshop.lab.api.checking import checked
from gpuworkshop.lab.api.objects import Object, copy_of
from gpuworkshop.lab.api.patching import apply, json_patch, merge_patch, strategic_merge
from gpuworkshop.lab.api.paths import Address
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.wire import strict

JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Patch:
    """A patch as it came: its media type, its content, and what strict decoding objects to."""

    kind: str
    body: Any
    doubts: list[str]

    @property
    def is_apply(self) -> bool:
        """Whether it is server-side apply, which may create the object, and records the managers itself."""
        return self.kind == APPLY


async def read(request: web.Request) -> Patch:
    """The patch in the request."""
    body = await bodies.read(request)
    kind = request.content_type
    if kind == APPLY:
        return Patch(kind, *bodies.mapping(*strict.decode_yaml(body)))
    if kind == JSON_PATCH:
        return Patch(kind, *strict.decode_json(body))
    if kind in (MERGE, STRATEGIC):
        return Patch(kind, *bodies.mapping(*strict.decode_json(body)))
    raise problems.unsupported_media_type([JSON_PATCH, MERGE, APPLY, STRATEGIC])


def patched(
    registry: Registry, address: Address, patch: Patch, live: Object | None, request: web.Request
) -> tuple[Object, list[str]]:
    """The object as it is after the patch, and the warnings for the client."""
    kind = address.kind
    if patch.is_apply:
        return _applied(registry, address, patch, live, request)
    if live is None:
        raise problems.not_found(kind, address.name)
    base = copy_of(live)
    if patch.kind == JSON_PATCH:
        new = json_patch(base, patch.body, kind, address.name)
    elif patch.kind == MERGE:
        new = merge_patch(base, patch.body)
    elif not kind.message:
        raise problems.unsupported_media_type([JSON_PATCH, MERGE, APPLY])
    else:
        new = strategic_merge(base, patch.body, kind.message)
    return checked(registry, kind, new, request, patch.doubts)


def _applied(
    registry: Registry, address: Address, patch: Patch, live: Object | None, request: web.Request
) -> tuple[Object, list[str]]:
    manager = request.query.get("fieldManager")
    if not manager:
        said = "fieldManager: Required value: is required for apply patch"
        message = f'PatchOptions.meta.k8s.io "" is invalid: {said}'
        raise problems.ApiError(422, "Invalid", message)
    if live is None and address.subresource:
        raise problems.not_found(address.kind, address.name)
    wanted, warnings = checked(registry, address.kind, patch.body, request, patch.doubts)
    force = options.flag(request.query, "force")
    new = apply(
        live and copy_of(live),
        wanted,
        manager,
        force,
        address.kind.message,
        registry.now(),
        custom.schema(registry, address.kind),
        address.subresource,
    )
    return new, warnings
