"""The client's end of SPDY/3.1, by the letter of its specification, to talk to the session under test."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from struct import pack, unpack

from gpuworkshop.lab.api.streams.spdy_headers import DICTIONARY


@dataclass(frozen=True)
class Frame:
    """A frame that came: `kind` 0 is data of a stream, every other a control frame."""

    kind: int
    flags: int
    stream: int
    payload: bytes


class SpdyClient:
    """Builds frames, and reads those that come."""

    def __init__(self) -> None:
        self._packer = zlib.compressobj(zdict=DICTIONARY)
        self._unpacker = zlib.decompressobj(zdict=DICTIONARY)
        self._incoming = b""

    def block(self, headers: Mapping[str, str]) -> bytes:
        plain = pack(">I", len(headers))
        for pair in headers.items():
            for text in pair:
                plain += pack(">I", len(text)) + text.encode("latin-1")
        return self._packer.compress(plain) + self._packer.flush(zlib.Z_SYNC_FLUSH)

    def syn_stream(self, stream: int, headers: Mapping[str, str], flags: int = 0) -> bytes:
        return control(1, pack(">IIH", stream, 0, 0) + self.block(headers), flags)

    def read(self, data: bytes) -> list[Frame]:
        """The whole frames that have come by now."""
        self._incoming += data
        frames = []
        while len(self._incoming) >= 8:
            first, flags, length = *unpack(">IB", self._incoming[:5]), int.from_bytes(self._incoming[5:8])
            if len(self._incoming) < 8 + length:
                break
            payload, self._incoming = self._incoming[8 : 8 + length], self._incoming[8 + length :]
            if not first & 0x80000000:
                frames.append(Frame(0, flags, first, payload))
                continue
            assert first >> 16 == 0x8003
            kind = first & 0xFFFF
            stream = 0 if kind == 6 else int.from_bytes(payload[:4])
            frames.append(Frame(kind, flags, stream, payload if kind == 6 else payload[4:]))
        return frames

    def headers(self, frame: Frame) -> bytes:
        """The plain block of a reply."""
        return self._unpacker.decompress(frame.payload)


def control(kind: int, payload: bytes, flags: int = 0) -> bytes:
    return pack(">HHI", 0x8003, kind, flags << 24 | len(payload)) + payload


def data(stream: int, payload: bytes, flags: int = 0) -> bytes:
    return pack(">II", stream, flags << 24 | len(payload)) + payload


def window_update(stream: int, more: int) -> bytes:
    return control(9, pack(">II", stream, more))


def reset(stream: int) -> bytes:
    return control(3, pack(">II", stream, 5))
