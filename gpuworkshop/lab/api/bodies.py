"""The body of a request: JSON, YAML or protobuf to an object, with its fields checked."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from gpuworkshop.lab.api import problems
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.wire import protobuf, strict

LARGEST = 3 * 2**20
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"


async def read(request: web.Request) -> bytes:
    """The whole body; ApiError when it is too large, or not what its headers say."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        message = f"Request entity too large: limit is {LARGEST}"
        raise problems.ApiError(413, "RequestEntityTooLarge", message) from error
    except web.RequestPayloadError as error:
        raise problems.bad_request(f"the body cannot be read: {error}") from error


async def decode(request: web.Request) -> tuple[Object, list[str]]:
    """The object in the body, and what strict decoding objects to. {} for an empty body."""
    body = await read(request)
    if not body:
        return {}, []
    kind = request.content_type
    if kind == PROTOBUF:
        return protobuf.decode(body), []
    if kind in (YAML, "application/x-yaml"):
        return mapping(*strict.decode_yaml(body))
    if kind in (JSON, "application/octet-stream", "text/plain"):
        return mapping(*strict.decode_json(body))
    raise problems.unsupported_media_type([JSON, YAML, PROTOBUF])


async def decode_as(request: web.Request, kind: Kind) -> Object:
    """The object in the body, which is to be of a kind that is posted and never stored; {} if empty."""
    body, _ = await decode(request)
    return fitted(body, kind)


def fitted(body: Object, kind: Kind) -> Object:
    """The body, where its fields are of the types of `kind`, whose name it may leave out."""
    if (named := body.get("kind") or kind.kind) != kind.kind:
        raise problems.bad_request(f"the body is to be a {kind.kind}, not {named!r}")
    strict.check_types(kind, body)
    return strict.pruned(kind.message, body)


def mapping(found: Any, doubts: list[str]) -> tuple[Object, list[str]]:
    """`found`, if it is an object."""
    if not isinstance(found, dict):
        raise problems.bad_request(
            f"couldn't get version/kind; json parse error: json: cannot unmarshal {strict.json_type(found)} "
            "into Go value of type struct"
        )
    return found, doubts
