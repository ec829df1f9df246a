"""Why a connection failed, in the words that Kubernetes' own programs have for it."""

from __future__ import annotations

import errno
import os


def why(error: BaseException, host: str, port: int) -> str:
    """`dial tcp 10.0.0.1:80: connect: connection refused`."""
    if isinstance(error, TimeoutError):
        return f"dial tcp {host}:{port}: i/o timeout"
    return f"dial tcp {host}:{port}: connect: {reason(error)}"


def reason(error: BaseException) -> str:
    """`connection refused`."""
    number = getattr(error, "errno", None)
    known = isinstance(number, int) and number in errno.errorcode
    return os.strerror(number).lower() if known and number is not None else str(error)
