"""The verbs on objects: get, list, watch, create, update, patch, delete."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from gpuworkshop.lab.api import bodies, escalation, patches, problems, selectors
from gpuworkshop.lab.api.answers import Form, json_response
from gpuworkshop.lab.api.checking import checked
from gpuworkshop.lab.api.objects import Object, encoded, meta, name_of, namespace_of
from gpuworkshop.lab.api.paths import Address
from gpuworkshop.lab.api.rbac import Authorizer
from gpuworkshop.lab.api.registry import Registry, Write
from gpuworkshop.lab.api.watching import Watch, Watched


@dataclass(frozen=True)
class Resources:
    """The handlers of one API server; `closing` is set when it ends, which ends the watches too."""

    registry: Registry
    authorizer: Authorizer
    closing: asyncio.Event

    async def handle(self, request: web.Request, address: Address) -> web.StreamResponse:
        """Answer a request for an object or a collection."""
        method = request.method
        if address.name:
            handlers = {"GET": self._get, "PUT": self._update, "PATCH": self._patch, "DELETE": self._delete}
        else:
            handlers = {"GET": self._list, "POST": self._create, "DELETE": self._delete_collection}
        if address.subresource:
            handlers.pop("DELETE")  # what a subresource names has no end of its own
        if method not in handlers or not address.kind.stored:
            raise method_not_allowed()
        return await handlers[method](request, address)

    async def _get(self, request: web.Request, address: Address) -> web.StreamResponse:
        found = self.registry.get(address.kind, address.namespace, address.name)
        return json_response(Form(request).object(self.registry, address.kind, found))

    async def _list(self, request: web.Request, address: Address) -> web.StreamResponse:
        matches = selection(request, address)
        if request.query.get("watch") in ("true", "1"):
            watched = Watched(address.kind, address.namespace, matches, Form(request))
            return await Watch(self.registry, watched, request).serve(request, self.closing)
        found = [obj for obj in self.registry.list(address.kind, address.namespace) if matches(obj)]
        page, list_meta = _page(request, found, self.registry)
        return json_response(Form(request).objects(self.registry, address.kind, page, list_meta))

    async def _create(self, request: web.Request, address: Address) -> web.StreamResponse:
        obj, doubts = await bodies.decode(request)
        obj, warnings = checked(self.registry, address.kind, obj, request, doubts)
        _fit(address, obj)
        self._check_rights(request, address, obj, None)
        created = self.registry.create(address.kind, obj, how(request))
        return json_response(Form(request).object(self.registry, address.kind, created), 201, warnings)

    async def _update(self, request: web.Request, address: Address) -> web.StreamResponse:
        obj, doubts = await bodies.decode(request)
        obj, warnings = checked(self.registry, address.kind, obj, request, doubts)
        _fit(address, obj)
        live = self.registry.get(address.kind, address.namespace, address.name)
        self._check_rights(request, address, obj, live)
        updated = self.registry.update(address.kind, obj, address.subresource, how(request))
        return json_response(Form(request).object(self.registry, address.kind, updated), 200, warnings)

    async def _patch(self, request: web.Request, address: Address) -> web.StreamResponse:
        patch = await patches.read(request)
        live = self.registry.find(address.kind, address.namespace, address.name)
        patched, warnings = patches.patched(self.registry, address, patch, live, request)
        _fit(address, patched)
        self._check_rights(request, address, patched, live)
        if live is None:
            self._check_creation(request, address)
        write = how(request, tracked=not patch.is_apply)
        if live is None:
            answer = self.registry.create(address.kind, patched, write)
        else:
            answer = self.registry.update(address.kind, patched, address.subresource, write)
        code = 201 if live is None else 200
        return json_response(Form(request).object(self.registry, address.kind, answer), code, warnings)

    def _check_rights(self, request: web.Request, address: Address, new: Object, live: Object | None) -> None:
        """Nobody may give away, by a role or a binding, what they do not have."""
        escalation.check(self.authorizer, request["user"], address.kind, new, address.namespace, live)

    def _check_creation(self, request: web.Request, address: Address) -> None:
        """To create by a patch takes the right to create, besides the right to patch."""
        asked = (request["user"], "create", address.kind.group, address.kind.plural, address.namespace, "")
        if not self.authorizer.allowed(*asked):
            raise self.authorizer.refusal(*asked)

    async def _delete(self, request: web.Request, address: Address) -> web.StreamResponse:
        options = await deletion_options(request)
        live = self.registry.get(address.kind, address.namespace, address.name)
        last = self.registry.delete(address.kind, address.namespace, address.name, **options) or live
        if self.registry.find(address.kind, address.namespace, address.name) is not None:
            return json_response(Form(request).object(self.registry, address.kind, last))
        if address.kind.plural == "pods" or options["dry_run"]:
            return json_response(Form(request).object(self.registry, address.kind, last))
        details = {"name": name_of(last), "kind": address.kind.plural, "uid": meta(last)["uid"]}
        if address.kind.group:
            details["group"] = address.kind.group
        success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return json_response({**success, "details": details})

    async def _delete_collection(self, request: web.Request, address: Address) -> web.StreamResponse:
        options = await deletion_options(request)
        matches = selection(request, address)
        found = [obj for obj in self.registry.list(address.kind, address.namespace) if matches(obj)]
        for obj in found:
            self.registry.delete(address.kind, namespace_of(obj), name_of(obj), **options)
        list_meta = {"resourceVersion": str(self.registry.store.revision)}
        return json_response(Form(request).objects(self.registry, address.kind, found, list_meta))


def how(request: web.Request, tracked: bool = True) -> Write:
    """How the client writes: its field manager, and whether it is a dry run."""
    dry_run = request.query.getall("dryRun", [])
    if any(value != "All" for value in dry_run):
        raise problems.bad_request(f'Invalid value: {dry_run}: supported values: "All"')
    agent = request.headers.get("User-Agent", "unknown").split("/")[0][:128]
    manager = request.query.get("fieldManager") or agent
    return Write(manager if tracked else "", bool(dry_run))


def selection(request: web.Request, address: Address) -> Callable[[Object], bool]:
    """Whether an object is within the labelSelector, the fieldSelector and the name of the request."""
    by_label = selectors.label_selector(request.query.get("labelSelector", ""))
    by_field = selectors.field_selector(address.kind, request.query.get("fieldSelector", ""))
    return lambda obj: by_label(obj["metadata"].get("labels") or {}) and by_field(obj)


async def deletion_options(request: web.Request) -> dict[str, Any]:
    """The keyword arguments of `Registry.delete` from the body's DeleteOptions and the query."""
    body, _ = await bodies.decode(request)
    query = request.query
    policy = query.get("propagationPolicy") or body.get("propagationPolicy") or ""
    if not policy and (body.get("orphanDependents") or query.get("orphanDependents") == "true"):
        policy = "Orphan"
    if policy not in ("", "Background", "Foreground", "Orphan"):
        raise problems.bad_request(
            f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "{policy}"'
        )
    grace = query.get("gracePeriodSeconds", body.get("gracePeriodSeconds"))
    try:
        grace = None if grace is None else int(grace)
    except ValueError as error:
        raise problems.bad_request(f"gracePeriodSeconds: {grace!r} is no whole number") from error
    return {
        "propagation": policy or "Background",
        "grace_period": grace,
        "uid": (body.get("preconditions") or {}).get("uid") or "",
        "dry_run": bool(query.get("dryRun") or body.get("dryRun")),
    }


def method_not_allowed() -> problems.ApiError:
    """405."""
    message = "the server does not allow this method on the requested resource"
    return problems.ApiError(405, "MethodNotAllowed", message)


def _fit(address: Address, obj: Object) -> None:
    """Give `obj` the namespace and the name of the path; ApiError when it names others."""
    metadata = meta(obj)
    if not isinstance(metadata, dict):
        raise problems.bad_request("metadata: not a mapping")
    seen = metadata.get("namespace")
    if address.namespace and seen not in (None, "", address.namespace):
        raise problems.bad_request(
            f"the namespace of the provided object does not match the namespace sent on the request: "
            f"{seen} != {address.namespace}"
        )
    if address.kind.namespaced:
        metadata["namespace"] = address.namespace
    if address.name and metadata.setdefault("name", address.name) != address.name:
        raise problems.bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({address.name})"
        )


def _page(
    request: web.Request, found: Sequence[Object], registry: Registry
) -> tuple[Sequence[Object], dict[str, Any]]:
    """The page that `limit` and `continue` ask for, and the list's metadata.

    Later pages keep the resourceVersion of the first, so a watch from there misses nothing.
    """
    revision, after = str(registry.store.revision), None
    if token := request.query.get("continue"):
        revision, after = _read_token(token)
        if registry.store.log.position_after(int(revision)) is None:
            raise problems.expired("The provided continue parameter is too old")
        found = [obj for obj in found if _key(obj) > after]
    limit = request.query.get("limit") or "0"
    if not limit.isdecimal():
        raise problems.bad_request(f"limit: {limit!r} is no whole number")
    list_meta: dict[str, Any] = {"resourceVersion": revision}
    if 0 < int(limit) < len(found):
        list_meta["remainingItemCount"] = len(found) - int(limit)
        found = found[: int(limit)]
        list_meta["continue"] = base64.urlsafe_b64encode(encoded([revision, _key(found[-1])])).decode()
    return found, list_meta


def _key(obj: Object) -> list[str]:
    return [namespace_of(obj), name_of(obj)]


def _read_token(token: str) -> tuple[str, list[str]]:
    try:
        revision, after = msgspec.json.decode(
            base64.urlsafe_b64decode(token.encode()), type=tuple[str, list[str]]
        )
        int(revision)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise problems.bad_request("continue key is not valid") from error
    return revision, after
