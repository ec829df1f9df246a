"""A client's channel to the kubelet: gRPC's unary calls over HTTP/2 on a unix socket, one after the other.

Not by grpcio: its core takes 15 MiB of memory and threads of its own, in an exporter that runs on each node
and asks one method once a second. Here a call is a few blocking writes and reads, each bounded by the
call's deadline. The protocol is that of https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions

from gpuworkshop.podresources.messages import SERVICE, types

# gRPC's own limit is 4 MiB, which a node with many pods passes; none would be a way to fill the memory.
LARGEST = 64 * 2**20
_READ = 64 * 1024
_PREFIX = struct.Struct(">?I")  # whether the message is compressed, and its length
# By their numbers, which begin with 0.
_CODES = (
    *("ok", "cancelled", "unknown", "invalid_argument", "deadline_exceeded", "not_found", "already_exists"),
    *("permission_denied", "resource_exhausted", "failed_precondition", "aborted", "out_of_range"),
    *("unimplemented", "internal", "unavailable", "data_loss", "unauthenticated"),
)


class CallError(Exception):
    """A call that failed: gRPC's name of the status, such as `unavailable`, and the details."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"{details} ({code})")
        self.code = code
        self.details = details


class Channel:
    """Calls the kubelet that serves on `path`; connects when it has to, and keeps the connection.

    Used by one thread; only `close` may be called by another, and ends a call that hangs.
    """

    def __init__(self, path: Path, *, largest: int = LARGEST) -> None:
        self._path = path
        self._largest = largest
        self._connection: _Connection | None = None

    def call(self, method: str, request: Any, timeout_s: float) -> Any:
        """The response to `request`, as in `call("List", ListPodResourcesRequest(), 3)`. Raises CallError."""
        deadline = time.monotonic() + timeout_s
        if self._connection is not None and self._connection.is_over():
            self.close()  # the kubelet was restarted
        try:
            if self._connection is None:
                self._connection = _Connection(self._path, deadline)
            body = self._connection.exchange(method, request.SerializeToString(), deadline, self._largest)
            return types(method)[1].FromString(body)
        except CallError as error:
            # After an answer, be it an error, the connection is good; else it is not known what still comes.
            if not isinstance(error, _Refused):
                self.close()
            raise
        except TimeoutError as error:
            self.close()
            raise CallError("deadline_exceeded", f"no answer within {timeout_s:g} s") from error
        except (OSError, h2.exceptions.H2Error) as error:
            self.close()
            raise CallError("unavailable", _words(error)) from error
        except Exception as error:  # protobuf's own, whose class differs between its implementations
            self.close()
            raise CallError("internal", f"what was answered is no {method} response: {error}") from error

    def close(self) -> None:
        """End the connection, and with it a call that waits; the next call makes a new one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class _Refused(CallError):
    """The server has answered with a status other than OK."""


class _Connection:
    """One HTTP/2 connection."""

    def __init__(self, path: Path, deadline: float) -> None:
        self._http = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self._socket = socket.socket(socket.AF_UNIX)
        self._goes = False  # the server has said that it takes no more calls
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.connect(str(path))
            self._http.initiate_connection()
            self._flush(deadline)
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        with suppress(OSError):  # it is closed at the other end
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def is_over(self) -> bool:
        """Whether the server has closed it, or is about to. Reads what has come since the last call."""
        self._socket.settimeout(0)
        try:
            while not self._goes:
                self._take(self._socket.recv(_READ))
        except BlockingIOError:
            return False
        except (OSError, CallError, h2.exceptions.H2Error):
            return True
        return True

    def exchange(self, method: str, message: bytes, deadline: float, largest: int) -> bytes:
        """The response's bytes."""
        stream = self._http.get_next_available_stream_id()
        left_ms = int(_left(deadline) * 1000)
        headers = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", f"/{SERVICE}/{method}"),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("user-agent", "gpuworkshop"),
            ("grpc-timeout", f"{left_ms}m"),
        ]
        self._http.send_headers(stream, headers)
        self._http.send_data(stream, _PREFIX.pack(False, len(message)) + message, end_stream=True)
        self._flush(deadline)
        body, said = bytearray(), dict[str, str]()
        for event in self._events(stream, deadline):
            match event:
                case h2.events.DataReceived(data=data):
                    body += data or b""
                    if len(body) > largest:
                        raise CallError("resource_exhausted", f"the answer is larger than {largest} bytes")
                case h2.events.ResponseReceived(headers=found) | h2.events.TrailersReceived(headers=found):
                    said.update((str(name), str(value)) for name, value in found or [])
        _require_ok(said)
        return _message(bytes(body))

    def _events(self, stream: int, deadline: float) -> Iterator[h2.events.Event]:
        """What comes on a stream, to its end."""
        while True:
            self._socket.settimeout(_left(deadline))
            for event in self._take(self._socket.recv(_READ)):
                if isinstance(event, h2.events.DataReceived):
                    self._http.acknowledge_received_data(event.flow_controlled_length or 0, stream)
                if isinstance(event, h2.events.StreamReset):
                    raise CallError("unavailable", f"the call was reset (HTTP/2 error {event.error_code})")
                if isinstance(event, h2.events.StreamEnded):
                    self._flush(deadline)
                    return
                yield event
            self._flush(deadline)

    def _take(self, data: bytes) -> list[h2.events.Event]:
        if not data:
            raise CallError("unavailable", "the kubelet closed the connection")
        events = self._http.receive_data(data)
        self._goes |= any(isinstance(event, h2.events.ConnectionTerminated) for event in events)
        return events

    def _flush(self, deadline: float) -> None:
        self._socket.settimeout(_left(deadline))
        self._socket.sendall(self._http.data_to_send())


def _require_ok(said: Mapping[str, str]) -> None:
    if (http := said.get(":status", "")) != "200":
        raise CallError("unavailable", f"answered with HTTP status {http or 'none'}: is it a kubelet?")
    number = said.get("grpc-status", "")
    if number != "0":
        code = _CODES[int(number)] if number.isdecimal() and int(number) < len(_CODES) else "unknown"
        raise _Refused(code, unquote(said.get("grpc-message", "")))


def _message(body: bytes) -> bytes:
    """The one message in a response's body."""
    if len(body) < _PREFIX.size:
        raise CallError("internal", "the answer has no message")
    compressed, length = _PREFIX.unpack_from(body)
    if compressed or length != len(body) - _PREFIX.size:
        raise CallError(
            "internal", "the answer's message is cut off, or compressed though nobody asked for that"
        )
    return body[_PREFIX.size :]


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
