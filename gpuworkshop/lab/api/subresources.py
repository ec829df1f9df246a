"""Subresources that are not the object itself: scale, eviction, token, binding, and the streams of a pod."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from aiohttp import web

from gpuworkshop.lab.api import bodies, options, patches, problems
from gpuworkshop.lab.api.answers import json_response
from gpuworkshop.lab.api.authentication import Tokens
from gpuworkshop.lab.api.kinds import ENDPOINTS, NAMESPACE, POD, SERVICE, SERVICE_ACCOUNT, Kind
from gpuworkshop.lab.api.objects import Object, copy_of, is_deleted, meta
from gpuworkshop.lab.api.patching import json_patch, merge_patch
from gpuworkshop.lab.api.paths import Address
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.resources import method_not_allowed
from gpuworkshop.lab.api.runtime import Runtime
from gpuworkshop.lab.api.streams import execution, logs, portforward, proxying
from gpuworkshop.lab.api.token_requests import bound_object

# What is posted to subresources, and never stored.
_SCALE = Kind("autoscaling", "v1", "Scale", "scales", message="k8s.io.api.autoscaling.v1.Scale")
_EVICTION = Kind("policy", "v1", "Eviction", "evictions", message="k8s.io.api.policy.v1.Eviction")
_BINDING = Kind("", "v1", "Binding", "bindings", message="k8s.io.api.core.v1.Binding")
_TOKEN_REQUEST = Kind(
    "authentication.k8s.io",
    "v1",
    "TokenRequest",
    "tokenrequests",
    message="k8s.io.api.authentication.v1.TokenRequest",
)
# Refuses, by an ApiError, the eviction of a pod that its disruption budget does not allow.
CheckEviction = Callable[[Registry, Object], None]
Handler = Callable[["Subresources", web.Request, Address], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Subresources:
    """The handlers of one API server."""

    registry: Registry
    runtime: Runtime
    tokens: Tokens
    check_eviction: CheckEviction

    def handles(self, address: Address) -> bool:
        """Whether the subresource is one of these, rather than a part of its object such as the status."""
        return address.subresource in self._handlers

    async def handle(self, request: web.Request, address: Address) -> web.StreamResponse:
        """Answer."""
        return await self._handlers[address.subresource](self, request, address)

    async def _scale(self, request: web.Request, address: Address) -> web.StreamResponse:
        kind, live = address.kind, self.registry.get(address.kind, address.namespace, address.name)
        scale = scale_of(live)
        if request.method == "GET":
            return json_response(scale)
        if request.method == "PUT":
            wanted = await bodies.decode_as(request, _SCALE)
        elif request.method == "PATCH":
            patch = await patches.read(request)
            if patch.kind == patches.JSON_PATCH:
                wanted = json_patch(scale, patch.body, kind, address.name)
            else:
                wanted = merge_patch(scale, patch.body)
            wanted = bodies.fitted(wanted, _SCALE)
        else:
            raise method_not_allowed()
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if replicas < 0:
            cause = problems.Cause(
                "FieldValueInvalid",
                f"Invalid value: {replicas}: must be greater than or equal to 0",
                "spec.replicas",
            )
            raise problems.invalid(_SCALE, address.name, [cause])
        new = copy_of(live)
        new["spec"]["replicas"] = replicas
        if version := meta(wanted).get("resourceVersion"):
            meta(new)["resourceVersion"] = version
        return json_response(scale_of(self.registry.update(kind, new, "scale", options.how(request))))

    async def _evict(self, request: web.Request, address: Address) -> web.StreamResponse:
        _only(request, "POST")
        body = await bodies.decode_as(request, _EVICTION)
        pod = self.registry.get(POD, address.namespace, address.name)
        asked = options.deletion_by(body.get("deleteOptions") or {}, request, POD)
        if not is_deleted(pod):
            self.check_eviction(self.registry, pod)
            self.registry.delete(POD, address.namespace, address.name, **asked)
        return json_response(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
        )

    async def _token(self, request: web.Request, address: Address) -> web.StreamResponse:
        _only(request, "POST")
        body = await bodies.decode_as(request, _TOKEN_REQUEST)
        account = self.registry.get(SERVICE_ACCOUNT, address.namespace, address.name)
        spec = body.get("spec") or {}
        bound = bound_object(self.registry, account, spec.get("boundObjectRef"))
        audiences, seconds = spec.get("audiences"), spec.get("expirationSeconds")
        token, expires = self.tokens.issue(account, audiences, seconds, bound)
        answer: dict[str, Any] = {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1"}
        answer |= {"metadata": {"name": address.name, "namespace": address.namespace}, "spec": spec}
        return json_response({**answer, "status": {"token": token, "expirationTimestamp": expires}}, 201)

    async def _bind(self, request: web.Request, address: Address) -> web.StreamResponse:
        _only(request, "POST")
        body = await bodies.decode_as(request, _BINDING)
        if not (node := (body.get("target") or {}).get("name")):
            cause = problems.Cause("FieldValueRequired", "Required value", "target.name")
            raise problems.invalid(_BINDING, address.name, [cause])
        pod = copy_of(self.registry.get(POD, address.namespace, address.name))
        if pod["spec"].get("nodeName"):
            message = f'pod {address.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
            raise problems.conflict(POD, address.name, message)
        pod["spec"]["nodeName"] = node
        self.registry.update(POD, pod, how=options.how(request))
        return json_response(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
        )

    async def _finalize(self, request: web.Request, address: Address) -> web.StreamResponse:
        _only(request, "PUT")
        body = await bodies.decode_as(request, NAMESPACE)
        new = copy_of(self.registry.get(NAMESPACE, "", address.name))
        new.setdefault("spec", {})["finalizers"] = (body.get("spec") or {}).get("finalizers") or []
        return json_response(self.registry.update(NAMESPACE, new, "finalize", options.how(request)))

    async def _log(self, request: web.Request, address: Address) -> web.StreamResponse:
        _only(request, "GET")
        return await logs.log(request, self.runtime, self._pod(address))

    async def _execute(self, request: web.Request, address: Address) -> web.StreamResponse:
        return await execution.execute(request, self.runtime, self._pod(address))

    async def _attach(self, request: web.Request, address: Address) -> web.StreamResponse:
        return await execution.attach(request, self.runtime, self._pod(address))

    async def _port_forward(self, request: web.Request, address: Address) -> web.StreamResponse:
        pod = self._pod(address)
        return await portforward.port_forward(request, lambda port: self.runtime.connect(pod, port))

    async def _proxy(self, request: web.Request, address: Address) -> web.StreamResponse:
        scheme, name, port = proxying.parse_target(address.name)
        if address.kind is SERVICE:
            service = self.registry.get(SERVICE, address.namespace, name)
            endpoints = self.registry.find(ENDPOINTS, address.namespace, name)
            is_a_pods = partial(self._is_a_pods, address.namespace)
            host, number = proxying.resolve_service(service, endpoints, port, is_a_pods)
        elif address.kind is POD:
            pod = self.registry.get(POD, address.namespace, name)
            host, number = proxying.resolve_pod(pod, port)
        else:
            raise problems.ApiError(
                501, "NotImplemented", "the lab's nodes have no API of their own to be reached by a proxy"
            )
        proxying.check_address(host)
        return await proxying.proxy(request, host, number, address.rest, scheme=scheme)

    def _is_a_pods(self, namespace: str, endpoint: Mapping[str, Any]) -> bool:
        """Whether an address in Endpoints is that of the pod in this namespace that it is said to be of."""
        target = endpoint.get("targetRef") or {}
        if target.get("namespace") != namespace:
            return False
        pod = self.registry.find(POD, namespace, target.get("name") or "") or {}
        return (pod.get("status") or {}).get("podIP") == endpoint.get("ip")

    def _pod(self, address: Address) -> Object:
        return self.registry.get(POD, address.namespace, address.name)

    _handlers: ClassVar[Mapping[str, Handler]] = {
        "scale": _scale,
        "eviction": _evict,
        "token": _token,
        "binding": _bind,
        "finalize": _finalize,
        "log": _log,
        "exec": _execute,
        "attach": _attach,
        "portforward": _port_forward,
        "proxy": _proxy,
    }


def scale_of(workload: Object) -> Object:
    """The Scale of a Deployment, ReplicaSet or StatefulSet."""
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = workload["spec"].get("selector") or {}
    labels = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta(workload)[key] for key in kept if key in meta(workload)},
        "spec": {"replicas": workload["spec"].get("replicas", 0)},
        "status": {
            "replicas": (workload.get("status") or {}).get("replicas", 0),
            "selector": ",".join(labels),
        },
    }


def _only(request: web.Request, method: str) -> None:
    if request.method != method:
        raise method_not_allowed()
