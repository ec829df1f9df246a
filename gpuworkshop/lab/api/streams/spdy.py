"""The server's end of SPDY/3.1, as far as port-forwarding needs it: bytes in, events out; nothing here waits.

kubectl's SPDY neither opens nor heeds windows, and would wait for ever behind a full one. So a client's
windows count from the first frame on in which it speaks of them; ours are opened in any case. A client that
heeds neither is held back by the connection below.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from struct import pack, unpack_from

from gpuworkshop.lab.api.streams.spdy_events import (
    DataReceived,
    Event,
    ProtocolError,
    StreamEnded,
    StreamOpened,
    StreamReset,
    WindowsOpened,
)
from gpuworkshop.lab.api.streams.spdy_headers import BadHeaders, HeaderReader, HeaderWriter

SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
PROTOCOL_ERROR, INVALID_STREAM, REFUSED_STREAM, FLOW_CONTROL_ERROR = 1, 2, 3, 7
FIN, UNIDIRECTIONAL = 1, 2
INITIAL_WINDOW_SIZE = 7  # the number of that setting
INITIAL_WINDOW = 1 << 16
LARGEST_WINDOW = (1 << 31) - 1
LARGEST_DATA = (1 << 24) - 1
LARGEST_CONTROL = 1 << 16
_CONTROL = 0x80030000  # a control frame of version 3


@dataclass(slots=True)
class _Flow:
    """What may still be sent, and what has arrived and gone on without being granted anew."""

    window: int = INITIAL_WINDOW
    ungranted: int = 0


@dataclass(slots=True)
class _Stream(_Flow):
    ended: bool = False  # by the client
    finished: bool = False  # by us


class Session:
    """One connection. After each call `take` holds what has to be sent."""

    def __init__(self) -> None:
        self._incoming, self._outgoing = bytearray(), bytearray()
        self._reader, self._writer = HeaderReader(), HeaderWriter()
        self._streams: dict[int, _Stream] = {}
        self._all = _Flow()
        self._last_stream = 0
        self._initial_window = INITIAL_WINDOW
        self._windows_count = False
        self._data: tuple[int, int, int] | None = (
            None  # of a data frame: its stream, its flags, bytes to come
        )

    def take(self) -> bytes:
        """What has to be sent, once."""
        taken, self._outgoing = bytes(self._outgoing), bytearray()
        return taken

    def receive(self, data: bytes) -> list[Event]:
        """What these bytes mean, however the connection has cut them. Raises ProtocolError."""
        self._incoming += data
        events: list[Event] = []
        while self._data_piece(*self._data, events) if self._data else self._frame(events):
            pass
        return events

    def reply(self, stream: int) -> None:
        """Accept a stream: nothing may be sent in it before."""
        self._control(SYN_REPLY, pack("!I", stream) + self._writer.pack({}))

    def room(self, stream: int) -> int:
        """The number of bytes that may be sent in a stream now."""
        found = self._streams.get(stream)
        if not self._windows_count or found is None:
            return LARGEST_DATA
        return max(0, min(found.window, self._all.window, LARGEST_DATA))

    def send(self, stream: int, data: bytes | memoryview) -> None:
        """Send no more than there is room for; dropped where the client has reset the stream."""
        found = self._streams.get(stream)
        if found is not None and not found.finished:
            found.window -= len(data)
            self._all.window -= len(data)
            self._outgoing += pack("!II", stream, len(data))
            self._outgoing += data

    def finish(self, stream: int) -> None:
        """That was all in this stream."""
        found = self._streams.get(stream)
        if found is not None and not found.finished:
            found.finished = True
            self._outgoing += pack("!II", stream, FIN << 24)
            self._forget(stream, found)

    def reset(self, stream: int, status: int) -> None:
        """Refuse a stream, or want no more of it."""
        self._streams.pop(stream, None)
        self._control(RST_STREAM, pack("!II", stream, status))

    def consumed(self, stream: int, count: int) -> None:
        """That many bytes of a stream have gone on: the client may send as many more."""
        found = self._streams.get(stream)
        if found is not None and not found.ended:
            self._grant(stream, found, count)
        self._grant(0, self._all, count)

    def go_away(self, status: int) -> None:
        """Say why the connection ends."""
        self._control(GOAWAY, pack("!II", self._last_stream, status))

    def _control(self, kind: int, payload: bytes) -> None:
        self._outgoing += pack("!II", _CONTROL | kind, len(payload)) + payload

    def _grant(self, stream: int, flow: _Flow, count: int) -> None:
        flow.ungranted += count
        if flow.ungranted >= INITIAL_WINDOW // 2:
            self._control(WINDOW_UPDATE, pack("!II", stream, flow.ungranted))
            flow.ungranted = 0

    def _forget(self, number: int, stream: _Stream) -> None:
        if stream.ended and stream.finished:
            del self._streams[number]

    def _pop(self, count: int) -> bytes:
        popped = bytes(self._incoming[:count])
        del self._incoming[:count]
        return popped

    def _frame(self, events: list[Event]) -> bool:
        if len(self._incoming) < 8:
            return False
        first, second = unpack_from("!II", self._incoming)
        flags, length = second >> 24, second & LARGEST_DATA
        if not first >> 31:
            self._data = (first, flags, length)
            del self._incoming[:8]
            return True
        if first & 0xFFFF0000 != _CONTROL or length > LARGEST_CONTROL:
            raise ProtocolError(f"a frame that begins {first:08x} {second:08x}")
        if len(self._incoming) < 8 + length:
            return False
        frame = self._pop(8 + length)
        handle = _HANDLERS.get(first & 0xFFFF)
        try:
            if handle is not None:
                handle(self, flags, frame[8:], events)
        except (struct.error, BadHeaders) as error:
            raise ProtocolError(f"a frame of type {first & 0xFFFF}: {error}") from error
        return True

    def _data_piece(self, number: int, flags: int, left: int, events: list[Event]) -> bool:
        """A part of a data frame is passed on when it arrives, since a frame may be of any size."""
        data = self._pop(left)
        left -= len(data)
        self._data = (number, flags, left) if left else None
        stream = self._streams.get(number)
        if stream is None or stream.ended:
            self._unwanted(number, len(data), last=not left)
            return not left
        if data:
            events.append(DataReceived(number, data))
        if not left and flags & FIN:
            self._end(number, stream, events)
        return not left

    def _unwanted(self, number: int, count: int, *, last: bool) -> None:
        # What was under way when a stream was reset still counts against the connection's window.
        self._grant(0, self._all, count)
        if last and (number > self._last_stream or number % 2 == 0):
            self.reset(number, INVALID_STREAM)

    def _end(self, number: int, stream: _Stream, events: list[Event]) -> None:
        stream.ended = True
        events.append(StreamEnded(number))
        self._forget(number, stream)

    def _on_syn_stream(self, flags: int, payload: bytes, events: list[Event]) -> None:
        number = unpack_from("!I", payload)[0] & LARGEST_WINDOW
        headers = self._reader.unpack(payload[10:])
        if number % 2 == 0 or number <= self._last_stream:
            raise ProtocolError(f"a stream numbered {number} after {self._last_stream}")
        self._last_stream = number
        stream = _Stream(self._initial_window, finished=bool(flags & UNIDIRECTIONAL))
        self._streams[number] = stream
        events.append(StreamOpened(number, headers))
        if flags & FIN:
            self._end(number, stream, events)

    def _on_headers(self, flags: int, payload: bytes, events: list[Event]) -> None:
        self._reader.unpack(payload[4:])  # the blocks that follow build on it
        number = unpack_from("!I", payload)[0]
        stream = self._streams.get(number)
        if stream is not None and flags & FIN and not stream.ended:
            self._end(number, stream, events)

    def _on_rst_stream(self, _: int, payload: bytes, events: list[Event]) -> None:
        number = unpack_from("!II", payload)[0]
        if self._streams.pop(number, None) is not None or number <= self._last_stream:
            events.append(StreamReset(number))

    def _on_settings(self, _: int, payload: bytes, events: list[Event]) -> None:
        for index in range(unpack_from("!I", payload)[0]):
            setting, value = unpack_from("!II", payload, 4 + 8 * index)
            if setting & 0xFFFFFF == INITIAL_WINDOW_SIZE:
                self._windows_count = True
                for stream in self._streams.values():
                    stream.window += value - self._initial_window
                self._initial_window = value
                events.append(WindowsOpened())

    def _on_ping(self, _: int, payload: bytes, __: list[Event]) -> None:
        if unpack_from("!I", payload)[0] % 2:
            self._control(PING, payload[:4])

    def _on_window_update(self, _: int, payload: bytes, events: list[Event]) -> None:
        number, more = unpack_from("!II", payload)
        self._windows_count = True
        flow = self._streams.get(number) if number else self._all
        if flow is None:
            return
        flow.window += more
        if flow.window <= LARGEST_WINDOW:
            events.append(WindowsOpened())
        elif number:
            self.reset(number, FLOW_CONTROL_ERROR)
            events.append(StreamReset(number))
        else:
            raise ProtocolError("a window of more than 2 GiB")


_HANDLERS: dict[int, Callable[[Session, int, bytes, list[Event]], None]] = {
    SYN_STREAM: Session._on_syn_stream,
    SYN_REPLY: Session._on_headers,
    HEADERS: Session._on_headers,
    RST_STREAM: Session._on_rst_stream,
    SETTINGS: Session._on_settings,
    PING: Session._on_ping,
    WINDOW_UPDATE: Session._on_window_update,
}
