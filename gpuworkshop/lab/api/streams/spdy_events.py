"""What a SPDY connection tells its owner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class ProtocolError(Exception):
    """The client does not speak SPDY/3.1; the connection cannot go on."""


@dataclass(frozen=True, slots=True)
class StreamOpened:
    """The client has opened a stream."""

    stream: int
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DataReceived:
    """Bytes of a stream; call `consumed` when they have gone on."""

    stream: int
    data: bytes


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The client sends no more in this stream."""

    stream: int


@dataclass(frozen=True, slots=True)
class StreamReset:
    """The client wants no more of this stream, in either direction."""

    stream: int


@dataclass(frozen=True, slots=True)
class WindowsOpened:
    """There may be room again."""


Event = StreamOpened | DataReceived | StreamEnded | StreamReset | WindowsOpened
