"""Downloads one file over HTTP: with a progress bar, in little time when there is no internet, and only
the bytes that were asked for.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx
from tqdm.auto import tqdm

from gpuworkshop.errors import DownloadError

CONNECT_S = 4.0
READ_S = 20.0


def has_bar(progress: bool) -> bool:
    """Whether a progress bar is wanted and has a terminal or notebook to be drawn in."""
    return progress and (sys.stderr.isatty() or _in_notebook())


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")  # not imported for this: a terminal that lacks it is no notebook
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def say(text: str) -> None:
    """One plain line on standard error."""
    print(text, file=sys.stderr, flush=True)


def download(url: str, to: Path, digest: str, *, progress: bool) -> None:
    """Write the file at `url` to `to`. Raises DownloadError unless its SHA-256 is `digest`."""
    _require_name(url)
    timeout = httpx.Timeout(READ_S, connect=CONNECT_S)
    try:
        with httpx.stream("GET", url, follow_redirects=True, timeout=timeout) as response:
            response.raise_for_status()
            got = _write(response, to, progress)
    except httpx.HTTPStatusError as error:
        raise DownloadError(f"{url} answers with status {error.response.status_code}") from error
    except httpx.HTTPError as error:
        raise DownloadError(
            f"{url} broke off or does not answer ({error or type(error).__name__})"
        ) from error
    if got != digest:
        raise DownloadError(f"what came from {url} has SHA-256 {got}, not the pinned {digest}")


def _write(response: httpx.Response, to: Path, progress: bool) -> str:
    """Write the body through to the disk; its SHA-256."""
    total = int(response.headers.get("content-length", 0)) or None
    sha256 = hashlib.sha256()
    with (
        to.open("wb") as file,
        tqdm(total=total, unit="B", unit_scale=True, desc=to.name, disable=not has_bar(progress)) as bar,
    ):
        for chunk in response.iter_bytes(1 << 20):
            file.write(chunk)
            sha256.update(chunk)
            bar.update(len(chunk))
        file.flush()
        os.fsync(file.fileno())
    return sha256.hexdigest()


def _require_name(url: str) -> None:
    """Look the host up first: a resolver without a network can block for half a minute, past any time-out.

    Behind a proxy the name is the proxy's business.
    """
    parts = urlsplit(url)
    if parts.scheme in getproxies() or "all" in getproxies():
        return
    done, found = threading.Event(), threading.Event()
    threading.Thread(target=_look_up, args=(parts.hostname, done, found), daemon=True).start()
    done.wait(CONNECT_S)
    if not found.is_set():
        raise DownloadError(f"{parts.hostname} cannot be looked up; there seems to be no internet here")


def _look_up(host: str, done: threading.Event, found: threading.Event) -> None:
    try:
        socket.getaddrinfo(host, None)
        found.set()
    except OSError:
        pass  # told by `found`
    finally:
        done.set()
