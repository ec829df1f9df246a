"""Keeps a `PodDirectory` up to date: lists the pods of this node, then watches them.

A thread of its own, so that no fault of the API server delays a reading or a scrape: what is known stays
known, and each fault is counted by its cause. A watch is asked for one minute and then taken up where it
was; one that says nothing for longer is hung, and is given up.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpuworkshop.exporter.api_server import ApiServer
from gpuworkshop.exporter.devices import Family
from gpuworkshop.exporter.pod_directory import PodDirectory

log = logging.getLogger(__name__)

WATCH_S = 60
# How long an answer may take: a watch's last word comes when its minute is over.
READ_S, HUNG_S = 10.0, WATCH_S + 15.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0
_FIRST_WAIT_S = 2.0
_PAGE = 250
_PATH = "/api/v1/pods"

FORBIDDEN, GONE, RESET, HUNG = "forbidden", "gone", "connection_reset", "timed_out"
_REFUSED, _TLS, _NO_ANSWER, _BAD_ANSWER, _OTHER = "refused", "tls", "unreachable", "bad_answer", "unexpected"
_STATUSES = {401: "unauthorized", 403: FORBIDDEN, 410: GONE, 429: "too_many_requests"}
# Shown with 0 from the start, so that the first one is seen as an increase.
_CAUSES = (FORBIDDEN, GONE, RESET, HUNG, _NO_ANSWER)


class Refused(Exception):
    """The API server said no, by an HTTP status or by an event of that code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code} {message}")
        self.code = code


class PodWatch:
    """Watches the pods of `node`; a context manager, watching while entered. `clock`: monotonic seconds."""

    def __init__(
        self,
        server: ApiServer,
        node: str,
        directory: PodDirectory,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._server, self._node, self._directory, self._clock = server, node, directory, clock
        self._errors = dict.fromkeys(_CAUSES, 0)
        self._fault = ""
        self._heard: float | None = None
        self._version = ""  # where to go on; "" to list anew
        self._connection: http.client.HTTPConnection | None = None
        self._listed, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="pod-watch", daemon=True)

    def __enter__(self) -> PodWatch:
        self._thread.start()
        self._listed.wait(_FIRST_WAIT_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        if (connection := self._connection) and connection.sock:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)  # which ends a read that waits
        self._thread.join(timeout=2)

    def families(self) -> list[Family]:
        """How the watching goes."""
        heard, errors = self._heard, dict(self._errors)
        up = float(heard is not None and not self._fault)
        found = [
            Family("gpuworkshop_pod_watch_up", "gauge", "1 if the API server tells this node's pods.",
                   [((), up)]),
            Family("gpuworkshop_pod_watch_pods", "gauge", "Pods of this node that are known.",
                   [((), float(len(self._directory)))]),
            Family("gpuworkshop_pod_watch_errors_total", "counter", "Lists and watches that failed.",
                   [([("cause", cause)], float(count)) for cause, count in errors.items()]),
        ]  # fmt: skip
        if heard is not None:
            about = "Since the API server last said something, if only that a watch's minute is over."
            age = self._clock() - heard
            found.append(Family("gpuworkshop_pod_watch_age_seconds", "gauge", about, [((), age)]))
        return found

    def follow(self) -> None:
        """List if need be, then watch until the minute is over. Raises what goes wrong."""
        if not self._version:
            self._list()
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_S),
        }
        with self._asked(query, HUNG_S) as answer:
            self._hear()
            for line in answer:
                self._take(_json(line))
        self._hear()

    def _list(self) -> None:
        pods: list[Mapping[str, Any]] = []
        more = ""
        while True:
            query = {"limit": str(_PAGE)} | ({"continue": more} if more else {})
            with self._asked(query, READ_S) as answer:
                found = _json(answer.read())
            pods += found.get("items") or []
            more = found["metadata"].get("continue", "")
            if not more:
                break
        self._directory.replace(pods)
        self._version = found["metadata"]["resourceVersion"]
        self._hear()

    def _take(self, event: Mapping[str, Any]) -> None:
        kind, about = event["type"], event["object"]
        if kind == "ERROR":
            raise Refused(int(about.get("code", 0)), str(about.get("message", "")))
        if kind == "DELETED":
            self._directory.remove(about)
        elif kind != "BOOKMARK":
            self._directory.put(about)
        self._version = about["metadata"]["resourceVersion"]
        self._hear()

    @contextlib.contextmanager
    def _asked(self, query: Mapping[str, str], read_s: float) -> Iterator[http.client.HTTPResponse]:
        connection = self._connection = self._server.connect(read_s)
        try:
            if self._stopped.is_set():  # whoever stopped it may have looked before the connection was there
                raise ConnectionAbortedError
            whole = {"fieldSelector": f"spec.nodeName={self._node}", **query}
            answer = self._server.get(connection, _PATH, whole)
            if answer.status != 200:
                raise Refused(answer.status, answer.reason)
            yield answer
        finally:
            self._connection = None
            connection.close()

    def _hear(self) -> None:
        self._heard = self._clock()
        if self._fault:
            log.info("the API server tells this node's pods again")
        self._fault = ""
        self._listed.set()

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopped.is_set():
            begun = self._heard
            try:
                self.follow()
            except Exception as error:  # noqa: BLE001 - whatever it is, the watch has to go on
                if self._stopped.is_set():
                    return
                self._failed(error)
            if self._heard != begun:
                pause_s = _FIRST_PAUSE_S
            if self._fault:
                self._stopped.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _failed(self, error: Exception) -> None:
        cause = _cause(error)
        if cause == GONE:
            self._version = ""
        self._errors[cause] = self._errors.get(cause, 0) + 1
        if cause != self._fault:
            log.warning("the API server does not tell this node's pods: %s (%s)", error, cause)
        self._fault = cause


def _json(text: bytes) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{type(found).__name__} where an object belongs")  # noqa: TRY004 - as json's own
    return found


def _cause(error: Exception) -> str:
    """The name of a failure among the errors."""
    if isinstance(error, Refused):
        return _STATUSES.get(error.code, f"http_{error.code}")
    kinds: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
        (TimeoutError, HUNG),
        (ssl.SSLError, _TLS),
        (ConnectionRefusedError, _REFUSED),
        ((ConnectionError, http.client.RemoteDisconnected, http.client.IncompleteRead), RESET),
        (OSError, _NO_ANSWER),
        ((http.client.HTTPException, ValueError, KeyError, TypeError), _BAD_ANSWER),
    )
    return next((name for kind, name in kinds if isinstance(error, kind)), _OTHER)
