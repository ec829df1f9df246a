"""Whether a service can do its work: it answers, and there is room on its disk.

Asking is one HTTP GET with a short time-out, straight to the service and past any proxy.
"""

from __future__ import annotations

import shutil
import socket
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

TIMEOUT_S = 2.0
LEAST_FREE_BYTES = 16 * 2**20
_opener = build_opener(ProxyHandler({}))


def trouble(url: str, timeout_s: float = TIMEOUT_S) -> str:
    """Empty when `url` answers with a status below 400, else what is wrong with it in a few words."""
    try:
        _opener.open(url, timeout=timeout_s).close()
    except HTTPError as error:
        error.close()
        return f"{url} answers {error.code} {error.reason}"
    except (OSError, HTTPException, ValueError) as error:
        return f"{url} does not answer: {getattr(error, 'reason', '') or error}"
    return ""


def listening(url: str) -> bool:
    """Whether anybody accepts connections at the host and port of `url`."""
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname, parts.port or 80), timeout=TIMEOUT_S).close()
    except OSError:
        return False
    return True


def no_room(folder: Path) -> str:
    """Empty when there is room to write in `folder`, else what is wrong in a few words.

    A Prometheus on a full disk answers as if nothing were amiss, and stores no sample.
    """
    free = shutil.disk_usage(folder).free
    return "" if free >= LEAST_FREE_BYTES else f"the disk is full: {free / 2**20:.0f} MiB free at {folder}"
