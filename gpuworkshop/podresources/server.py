"""The pod-resources API as a service of gRPC, for the simulated kubelet; the client needs no grpcio."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import grpc

from gpuworkshop.podresources.messages import SERVICE, types

Method = Callable[[Any, Any], Awaitable[Any]]


class Lister(Protocol):
    """What a node answers; each method gets the request and gRPC's context, and returns the response."""

    async def list(self, request: Any, context: Any) -> Any:
        """Every pod of the node with what its containers hold."""

    async def allocatable(self, request: Any, context: Any) -> Any:
        """Everything that the node could give away."""

    async def get(self, request: Any, context: Any) -> Any:
        """One pod."""


def handler(lister: Lister) -> grpc.GenericRpcHandler:
    """The service, to be added to a gRPC server."""
    answers: dict[str, Method] = {
        "List": lister.list,
        "GetAllocatableResources": lister.allocatable,
        "Get": lister.get,
    }
    methods = {
        name: grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=types(name)[0].FromString,
            response_serializer=types(name)[1].SerializeToString,
        )
        for name, answer in answers.items()
    }
    return grpc.method_handlers_generic_handler(SERVICE, methods)
