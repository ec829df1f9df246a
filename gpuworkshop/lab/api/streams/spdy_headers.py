"""SPDY/3.1's header blocks: names and values, compressed by zlib with a dictionary that both ends know."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from struct import pack, unpack_from

LARGEST_BLOCK = 1 << 16

# The dictionary: words, each after its length, then a tail of what headers often hold.
_WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language "
    "accept-ranges age allow authorization cache-control connection content-base content-encoding "
    "content-language content-length content-location content-md5 content-range content-type date etag "
    "expect expires from host if-match if-modified-since if-none-match if-range if-unmodified-since "
    "last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer "
    "retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate "
    "method get status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin"
)
_TAIL = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    "403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)


def _text(text: str) -> bytes:
    encoded = text.encode("latin-1")
    return pack("!I", len(encoded)) + encoded


DICTIONARY = b"".join(_text(word.replace("_", " ")) for word in _WORDS.split()) + _TAIL.encode()


class BadHeaders(ValueError):
    """A block that does not unpack."""


class HeaderWriter:
    """Packs the blocks of one direction; each builds on those before."""

    def __init__(self) -> None:
        self._zlib = zlib.compressobj(zdict=DICTIONARY)

    def pack(self, headers: Mapping[str, str]) -> bytes:
        """The block of these headers."""
        pairs = b"".join(_text(name.lower()) + _text(value) for name, value in headers.items())
        plain = pack("!I", len(headers)) + pairs
        return self._zlib.compress(plain) + self._zlib.flush(zlib.Z_SYNC_FLUSH)


class HeaderReader:
    """Unpacks the blocks of one direction, all of them and in order."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(zdict=DICTIONARY)

    def unpack(self, block: bytes) -> dict[str, str]:
        """The headers of a block; BadHeaders for one that is damaged, or larger than anybody needs."""
        try:
            plain = self._zlib.decompress(block, LARGEST_BLOCK)
        except zlib.error as error:
            raise BadHeaders(str(error)) from error
        if self._zlib.unconsumed_tail:
            raise BadHeaders(f"more than {LARGEST_BLOCK} bytes")
        return _pairs(plain)


def _pairs(plain: bytes) -> dict[str, str]:
    texts, at = [], 4
    while at < len(plain):
        if at + 4 > len(plain):
            raise BadHeaders("cut off")
        end = at + 4 + int(unpack_from("!I", plain, at)[0])
        texts.append(plain[at + 4 : end].decode("latin-1"))
        at = end
    if at != len(plain) or len(plain) < 4 or len(texts) != 2 * unpack_from("!I", plain)[0]:
        raise BadHeaders("cut off")
    return dict(zip(texts[::2], texts[1::2], strict=True))
