"""What a request asks for beside its object: the options in its query, and in the body of a deletion."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from gpuworkshop.lab.api import bodies, problems
from gpuworkshop.lab.api.kinds import JOB, Kind
from gpuworkshop.lab.api.registry import Registry, Write

_META = "k8s.io.apimachinery.pkg.apis.meta.v1"
DELETE_OPTIONS = Kind("meta.k8s.io", "v1", "DeleteOptions", "", message=f"{_META}.DeleteOptions")
_LIST_OPTIONS = Kind("meta.k8s.io", "v1", "ListOptions", "")
POLICIES = ("Background", "Foreground", "Orphan")
_WHOLE = re.compile(r"[0-9]{1,18}")


def flag(query: Mapping[str, str], name: str) -> bool:
    """A truth value, as the real one reads it: whatever is there and is not `false` or `0`."""
    return name in query and query[name].lower() not in ("false", "0")


def whole_number(query: Mapping[str, str], name: str) -> int:
    """A number that is not negative; 0 where there is none."""
    text = query.get(name) or "0"
    if not _WHOLE.fullmatch(text):
        raise problems.bad_request(f"{name}: Invalid value: {text[:64]!r}: must be a whole number")
    return int(text)


def version_asked(registry: Registry, query: Mapping[str, str]) -> int:
    """The resourceVersion of a read, 0 for any. ApiError 504 for one that is still to come."""
    version, current = whole_number(query, "resourceVersion"), registry.store.revision
    if version > current:
        message = f"Timeout: Too large resource version: {version}, current: {current}"
        causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
        raise problems.ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})
    return version


def check_list(registry: Registry, query: Mapping[str, str]) -> None:
    """ApiError for a list from a version that cannot be given: only the objects of now are kept."""
    version, match = version_asked(registry, query), query.get("resourceVersionMatch", "")
    if "sendInitialEvents" in query:
        raise _forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")
    if query.get("continue") and version:
        raise problems.bad_request("specifying resource version is not allowed when using continue")
    if not match:
        return
    if match not in ("Exact", "NotOlderThan"):
        why = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        raise _invalid("resourceVersionMatch", why, "FieldValueNotSupported")
    if query.get("continue"):
        why = "resourceVersionMatch is forbidden when continue is provided"
        raise _forbidden("resourceVersionMatch", why)
    if not query.get("resourceVersion"):
        why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise _forbidden("resourceVersionMatch", why)
    if match == "Exact" and version < registry.store.revision:
        raise problems.expired(f"The resourceVersion for the provided list is too old: {version}")


def check_watch(query: Mapping[str, str]) -> None:
    """ApiError for options that do not go together in a watch."""
    match = query.get("resourceVersionMatch", "")
    if "sendInitialEvents" in query and match != "NotOlderThan":
        why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        raise _forbidden("sendInitialEvents", why)
    if match and "sendInitialEvents" not in query:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        raise _forbidden("resourceVersionMatch", why)


def how(request: web.Request, tracked: bool = True) -> Write:
    """How the client writes: its field manager, and whether it is a dry run."""
    agent = request.headers.get("User-Agent", "unknown").split("/")[0][:128]
    manager = request.query.get("fieldManager") or agent
    return Write(manager if tracked else "", _is_dry_run(request.query.getall("dryRun", [])))


async def deletion(request: web.Request, kind: Kind) -> dict[str, Any]:
    """The keyword arguments of `Registry.delete` from the body's DeleteOptions and the query."""
    return deletion_by(await bodies.decode_as(request, DELETE_OPTIONS), request, kind)


def deletion_by(body: Mapping[str, Any], request: web.Request, kind: Kind) -> dict[str, Any]:
    """The same from DeleteOptions that have been read. Jobs alone leave their pods, unless told otherwise."""
    query = request.query
    policy = query.get("propagationPolicy") or body.get("propagationPolicy") or ""
    if not policy and (body.get("orphanDependents") or flag(query, "orphanDependents")):
        policy = "Orphan"
    if policy not in ("", *POLICIES):
        known = ", ".join(f'"{name}"' for name in POLICIES)
        why = f'propagationPolicy: Unsupported value: "{policy}": supported values: {known}'
        raise problems.ApiError(422, "Invalid", f'DeleteOptions.meta.k8s.io "" is invalid: {why}')
    grace = body.get("gracePeriodSeconds")
    if (asked := query.get("gracePeriodSeconds")) is not None:
        grace = -1 if asked.startswith("-") else whole_number(query, "gracePeriodSeconds")
    preconditions = body.get("preconditions") or {}
    return {
        "propagation": policy or ("Orphan" if kind is JOB else "Background"),
        "grace_period": grace,
        "uid": preconditions.get("uid") or "",
        "version": preconditions.get("resourceVersion") or "",
        "dry_run": _is_dry_run([*query.getall("dryRun", []), *(body.get("dryRun") or [])]),
    }


def _is_dry_run(asked: list[str]) -> bool:
    if any(value != "All" for value in asked):
        raise problems.bad_request(f'dryRun: Unsupported value: {asked}: supported values: "All"')
    return bool(asked)


def _forbidden(field: str, why: str) -> problems.ApiError:
    return _invalid(field, f"Forbidden: {why}", "FieldValueForbidden")


def _invalid(field: str, why: str, reason: str) -> problems.ApiError:
    return problems.invalid(_LIST_OPTIONS, "", [problems.Cause(reason, why, field)])
