"""The API server: who asks, may they, what do they ask for, and the answer, over TLS on loopback."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from gpuworkshop.lab.api import bodies, discovery, openapi_documents, options, paths, problems, reviews
from gpuworkshop.lab.api.answers import error_response, json_response
from gpuworkshop.lab.api.authentication import ANONYMOUS, Authenticator, User
from gpuworkshop.lab.api.kinds import POD
from gpuworkshop.lab.api.paths import Address
from gpuworkshop.lab.api.rbac import Authorizer
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.resources import Resources
from gpuworkshop.lab.api.subresources import Subresources

log = logging.getLogger(__name__)
INTERACTIVE = ("exec", "attach", "portforward")
OPEN_PATHS = ("/healthz", "/readyz", "/livez", "/version")
# The protobuf form of {"swagger": "2.0"}, which is what kubectl takes.
SWAGGER, EMPTY_SWAGGER = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", b"\n\x032.0"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class ApiServer:
    """The HTTP face of a registry."""

    registry: Registry
    authenticator: Authenticator
    authorizer: Authorizer
    subresources: Subresources
    version: str
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    def close(self) -> None:
        """End every watch, so that the server can end."""
        self.closing.set()
        self.registry.store.log.wake()

    def app(self) -> web.Application:
        """The aiohttp application."""
        app = web.Application(client_max_size=bodies.LARGEST, middlewares=[self._guard])
        for path in OPEN_PATHS[:3]:
            app.router.add_get(path, self._healthy)
            app.router.add_get(path + "/{check:.*}", self._healthy)
        app.router.add_get("/version", self._version)
        app.router.add_get("/{path:(api|apis)/?}", self._discovery)
        app.router.add_get("/{path:api/v1/?}", self._discovery)
        app.router.add_get("/{path:apis/[^/]+(/[^/]+)?/?}", self._discovery)
        app.router.add_get("/openapi/v2", self._openapi_v2)
        app.router.add_get("/openapi/{path:.*}", self._openapi)
        app.router.add_route("*", "/{path:api/v1/.+}", self._resource)
        app.router.add_route("*", "/{path:apis/[^/]+/[^/]+/.+}", self._resource)
        app.router.add_route("*", "/{path:.*}", self._nowhere)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Every refusal becomes a Status, and every fault of the lab's own a Status and a line in its log."""
        try:
            return await handler(request)
        except problems.ApiError as error:
            return error_response(error)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except web.HTTPException as error:  # such as for `OPTIONS *`, which no route can match
            return error_response(
                problems.ApiError(error.status, error.reason.replace(" ", ""), error.reason)
            )
        except Exception:
            log.exception("%s %s", request.method, request.path_qs)
            return error_response(
                problems.ApiError(
                    500,
                    "InternalError",
                    "Internal error occurred: a fault of the lab's API server; see its log",
                )
            )

    def _user(self, request: web.Request) -> User:
        user = self.authenticator.user(request.headers)
        if user is ANONYMOUS and not request.path.startswith(OPEN_PATHS):
            raise problems.ApiError(401, "Unauthorized", "Unauthorized")
        impersonated = self.authenticator.impersonated(request.headers)
        if impersonated is None:
            return user
        for need in impersonated.needs():
            if not self.authorizer.allowed(user, "impersonate", *need):
                raise self.authorizer.refusal(user, "impersonate", *need)
        return impersonated.user

    async def _healthy(self, request: web.Request) -> web.Response:
        self._user(request)
        return web.Response(text="ok")

    async def _version(self, request: web.Request) -> web.Response:
        self._user(request)
        return json_response(discovery.version(self.version))

    async def _discovery(self, request: web.Request) -> web.Response:
        self._authorize_url(request)
        accept = request.headers.get("Accept", "")
        found, content_type = discovery.document(self.registry.kinds, request.path, accept)
        if found is None:
            raise paths.unknown()
        response = json_response(found)
        response.headers["Content-Type"] = content_type
        response.headers["Vary"] = "Accept"
        return response

    async def _openapi(self, request: web.Request) -> web.Response:
        self._authorize_url(request)
        found = openapi_documents.document(self.registry, request.path)
        if found is None:
            raise paths.unknown()
        return json_response(found)

    async def _openapi_v2(self, request: web.Request) -> web.Response:
        """A document without any definition: clients that ask here for a kind learn that it is not known."""
        self._authorize_url(request)
        return web.Response(body=EMPTY_SWAGGER, content_type=SWAGGER)

    def _authorize_url(self, request: web.Request) -> None:
        user = self._user(request)
        if not self.authorizer.allowed_url(user, request.method.lower(), request.path):
            raise self.authorizer.url_refusal(user, request.method.lower(), request.path)

    async def _resource(self, request: web.Request) -> web.StreamResponse:
        user = self._user(request)
        address = paths.parse(self.registry.kinds, request.path)
        if not address.kind.stored:
            if request.method != "POST" or address.name:
                raise paths.unknown()
            body = await bodies.decode_as(request, address.kind)
            answer = reviews.answer(
                address.kind, body, user, self.authorizer, self.authenticator, address.namespace
            )
            return json_response(answer, 201)
        self._authorize(request, address, user)
        if self.subresources.handles(address):
            return await self.subresources.handle(request, address)
        resources = Resources(self.registry, self.authorizer, user, self.closing)
        return await resources.handle(request, address)

    def _authorize(self, request: web.Request, address: Address, user: User) -> None:
        verb = address.verb(request.method, options.flag(request.query, "watch"))
        verbs = [verb]
        if address.kind is POD and address.subresource in INTERACTIVE and verb == "get":
            verbs.append("create")  # from 1.35 on: a websocket comes by GET, and is no reading
        for each in verbs:
            asked = (each, address.kind.group, address.resource, address.namespace, address.name)
            if not self.authorizer.allowed(user, *asked):
                raise self.authorizer.refusal(user, *asked)

    async def _nowhere(self, request: web.Request) -> web.StreamResponse:
        self._authorize_url(request)
        raise paths.unknown()
