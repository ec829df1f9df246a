"""The verbs on objects: get, list, watch, create, update, patch, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web

from gpuworkshop.lab.api import bodies, escalation, options, pages, patches, problems, selectors
from gpuworkshop.lab.api.answers import Form, json_response
from gpuworkshop.lab.api.checking import checked
from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.api.objects import Object, meta, name_of, namespace_of
from gpuworkshop.lab.api.options import how
from gpuworkshop.lab.api.paths import Address
from gpuworkshop.lab.api.rbac import Authorizer
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.users import User
from gpuworkshop.lab.api.watching import Watch, Watched


@dataclass(frozen=True)
class Resources:
    """The handlers of one user's requests; `closing` is set when the server ends, which ends watches too."""

    registry: Registry
    authorizer: Authorizer
    user: User
    closing: asyncio.Event

    async def handle(self, request: web.Request, address: Address) -> web.StreamResponse:
        """Answer a request for an object or a collection."""
        verb = address.verb(request.method, options.flag(request.query, "watch"))
        if not address.subresource and verb not in address.kind.verbs:
            raise method_not_allowed()
        handlers = {"GET": self._list}
        if address.name:
            handlers = {"GET": self._get, "PUT": self._update, "PATCH": self._patch}
            if not address.subresource:  # what a subresource names has no end of its own
                handlers["DELETE"] = self._delete
        elif address.namespace or not address.kind.namespaced:
            handlers |= {"POST": self._create, "DELETE": self._delete_collection}
        if request.method not in handlers:
            raise method_not_allowed()
        return await handlers[request.method](request, address)

    async def _get(self, request: web.Request, address: Address) -> web.StreamResponse:
        options.version_asked(self.registry, request.query)
        found = self.registry.get(address.kind, address.namespace, address.name)
        return json_response(Form(request).object(self.registry, address.kind, found))

    async def _list(self, request: web.Request, address: Address) -> web.StreamResponse:
        matches = selection(request, address)
        if options.flag(request.query, "watch"):
            watched = Watched(address.kind, address.namespace, matches, Form(request))
            return await Watch(self.registry, watched, request).serve(request, self.closing)
        options.check_list(self.registry, request.query)
        found = [obj for obj in self.registry.list(address.kind, address.namespace) if matches(obj)]
        page, list_meta = pages.page(request.query, found, self.registry)
        return json_response(Form(request).objects(self.registry, address.kind, page, list_meta))

    async def _create(self, request: web.Request, address: Address) -> web.StreamResponse:
        obj, doubts = await bodies.decode(request)
        obj, warnings = checked(self.registry, address.kind, obj, request, doubts)
        _fit(address, obj)
        self._check_rights(address, obj, None)
        created = self.registry.create(address.kind, obj, how(request))
        return json_response(Form(request).object(self.registry, address.kind, created), 201, warnings)

    async def _update(self, request: web.Request, address: Address) -> web.StreamResponse:
        obj, doubts = await bodies.decode(request)
        obj, warnings = checked(self.registry, address.kind, obj, request, doubts)
        _fit(address, obj)
        live = self.registry.get(address.kind, address.namespace, address.name)
        self._check_rights(address, obj, live)
        updated = self.registry.update(address.kind, obj, address.subresource, how(request))
        return json_response(Form(request).object(self.registry, address.kind, updated), 200, warnings)

    async def _patch(self, request: web.Request, address: Address) -> web.StreamResponse:
        patch = await patches.read(request)
        live = self.registry.find(address.kind, address.namespace, address.name)
        patched, warnings = patches.patched(self.registry, address, patch, live, request)
        _fit(address, patched)
        self._check_rights(address, patched, live)
        if live is None:
            self._check_creation(address)
        write = how(request, tracked=not patch.is_apply)
        if live is None:
            answer = self.registry.create(address.kind, patched, write)
        else:
            answer = self.registry.update(address.kind, patched, address.subresource, write)
        code = 201 if live is None else 200
        return json_response(Form(request).object(self.registry, address.kind, answer), code, warnings)

    def _check_rights(self, address: Address, new: Object, live: Object | None) -> None:
        """Nobody may give away, by a role or a binding, what they do not have."""
        escalation.check(self.authorizer, self.user, address.kind, new, address.namespace, live)

    def _check_creation(self, address: Address) -> None:
        """To create by a patch takes the right to create, besides the right to patch."""
        asked = (self.user, "create", address.kind.group, address.kind.plural, address.namespace, "")
        if not self.authorizer.allowed(*asked):
            raise self.authorizer.refusal(*asked)

    async def _delete(self, request: web.Request, address: Address) -> web.StreamResponse:
        asked = await options.deletion(request, address.kind)
        live = self.registry.get(address.kind, address.namespace, address.name)
        last = self.registry.delete(address.kind, address.namespace, address.name, **asked) or live
        stays = self.registry.find(address.kind, address.namespace, address.name) is not None
        if stays or address.kind is POD:
            return json_response(Form(request).object(self.registry, address.kind, last))
        details = {"name": name_of(last), "kind": address.kind.plural, "uid": meta(last)["uid"]}
        if address.kind.group:
            details["group"] = address.kind.group
        success = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return json_response({**success, "details": details})

    async def _delete_collection(self, request: web.Request, address: Address) -> web.StreamResponse:
        asked = await options.deletion(request, address.kind)
        matches = selection(request, address)
        found = [obj for obj in self.registry.list(address.kind, address.namespace) if matches(obj)]
        for obj in found:
            self.registry.delete(address.kind, namespace_of(obj), name_of(obj), **asked)
        list_meta = {"resourceVersion": str(self.registry.store.revision)}
        return json_response(Form(request).objects(self.registry, address.kind, found, list_meta))


def selection(request: web.Request, address: Address) -> Callable[[Object], bool]:
    """Whether an object is within the labelSelector, the fieldSelector and the name of the request."""
    by_label = selectors.label_selector(request.query.get("labelSelector", ""))
    by_field = selectors.field_selector(address.kind, request.query.get("fieldSelector", ""))
    return lambda obj: by_label(obj["metadata"].get("labels") or {}) and by_field(obj)


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
