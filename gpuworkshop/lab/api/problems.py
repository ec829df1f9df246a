"""What an API server answers when it cannot do what was asked: a Status with a reason and a code.

The words are those of the real one, since people look for them, and clients act on reason and code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpuworkshop.lab.api.kinds import Kind


@dataclass(frozen=True)
class Cause:
    """One thing that is wrong, at a field: reason is FieldValueInvalid, FieldValueRequired, …."""

    reason: str
    message: str
    field: str


class ApiError(Exception):
    """A refusal; `code` is the HTTP status, `details` the Status's own."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details or {}

    def status(self) -> dict[str, Any]:
        """The Status object of the answer."""
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        return {**body, "details": self.details} if self.details else body


def not_found(kind: Kind, name: str) -> ApiError:
    """404 for an object."""
    return ApiError(404, "NotFound", f'{kind.resource} "{name}" not found', _details(kind, name))


def already_exists(kind: Kind, name: str) -> ApiError:
    """409 at a creation."""
    return ApiError(409, "AlreadyExists", f'{kind.resource} "{name}" already exists', _details(kind, name))


def conflict(kind: Kind, name: str, why: str = "") -> ApiError:
    """409 at a change of an object that has changed since it was read."""
    why = why or (
        "the object has been modified; please apply your changes to the latest version and try again"
    )
    message = f'Operation cannot be fulfilled on {kind.resource} "{name}": {why}'
    return ApiError(409, "Conflict", message, _details(kind, name))


def invalid(kind: Kind, name: str, causes: Sequence[Cause]) -> ApiError:
    """422, with each field that is wrong."""
    said = [f"{cause.field}: {cause.message}" for cause in causes]
    words = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    qualified = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    details = {**_details(kind, name), "kind": kind.kind, "causes": [asdict(cause) for cause in causes]}
    return ApiError(422, "Invalid", f'{qualified} "{name}" is invalid: {words}', details)


def forbidden(kind: Kind, name: str, why: str) -> ApiError:
    """403 by admission or authorisation."""
    message = (
        f'{kind.resource} "{name}" is forbidden: {why}' if name else f"{kind.resource} is forbidden: {why}"
    )
    return ApiError(403, "Forbidden", message, _details(kind, name))


def bad_request(message: str) -> ApiError:
    """400: the request itself makes no sense."""
    return ApiError(400, "BadRequest", message)


def expired(message: str) -> ApiError:
    """410: a resourceVersion or a continue token from before what is remembered."""
    return ApiError(410, "Expired", message)


def unsupported_media_type(known: Sequence[str]) -> ApiError:
    """415: a body or a patch in a form that is not known."""
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}"
    )
    return ApiError(415, "UnsupportedMediaType", message)


def _details(kind: Kind, name: str) -> dict[str, Any]:
    details = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in details.items() if value}
