"""JSON patch (RFC 6902): a list of operations. kubectl sends it for `rollout undo` and `patch --type=json`.

The operations are the jsonpatch library's; here are the API server's limits and its answers.
"""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import jsonpointer

from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.patching.merge import without_nulls
from gpuworkshop.lab.api.problems import ApiError, Cause, bad_request, invalid

MOST_OPERATIONS = 10_000


def json_patch(base: Object, patch: object, kind: Kind, name: str) -> Object:
    """`base`, which is changed in place, after the operations. Raises ApiError: 400 for what is no patch,
    422 for one that does not fit, such as a test that fails or a path that is not there.
    """
    operations = _operations(patch)
    try:
        patched = jsonpatch.apply_patch(base, operations, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError) as error:
        raise _unfit() from error
    if not isinstance(patched, dict):
        why = f"Invalid value: {json.dumps(patched)}: an object of kind {kind.kind} must be a mapping"
        raise invalid(kind, name, [Cause("FieldValueInvalid", why, "patch")])
    return _typed(patched) if kind.message else patched


def _operations(patch: object) -> list[dict[str, Any]]:
    if not isinstance(patch, list):
        seen = "object" if isinstance(patch, dict) else "value"
        raise bad_request(
            f"error decoding patch: json: cannot unmarshal {seen} into Go value of type jsonpatch.Patch"
        )
    if not all(isinstance(operation, dict) for operation in patch):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal value into Go value of type jsonpatch.Operation"
        )
    if len(patch) > MOST_OPERATIONS:
        message = (
            f"Request entity too large: The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, "
            f"got {len(patch)}"
        )
        raise ApiError(413, "RequestEntityTooLarge", message)
    return patch


def _typed(patched: Object) -> Object:
    """A field that is null is a field that is not set, wherever the type is known."""
    typed: Object = without_nulls(patched)
    return typed


def _unfit() -> ApiError:
    message = "the server rejected our request due to an error in our request"
    return ApiError(422, "Invalid", message)
