"""A container's log: what it writes, line by line with its time, as containerd keeps it on a real node.

Each line of the file is `TIME STREAM F|P TEXT`; P marks a piece of a line that goes on. A file that has
grown too large is set aside once, so that a container keeps one to two times `KEPT` bytes. There is one log
for each life of the container, and the life before last is forgotten.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from gpuworkshop.lab.api.runtime import LogOptions

KEPT = 5_000_000  # bytes
LONGEST_PIECE = 16_384  # bytes; a longer line is kept in pieces


class ContainerLog:
    """The log of one life of a container; those who follow are woken by each line."""

    def __init__(self, path: Path, kept: int = KEPT) -> None:
        self.path = path
        self._kept = kept
        self._pending = {"stdout": b"", "stderr": b""}
        self._files = 1  # how many there have been: a follower sees when the file was set aside
        self._closed = False
        self._more = asyncio.Event()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()

    def write(self, stream: str, data: bytes) -> None:
        """Add what came on "stdout" or "stderr"; a line shows when it is complete."""
        *lines, rest = (self._pending[stream] + data).split(b"\n")
        self._pending[stream] = rest
        records = b"".join(record for line in lines for record in _records(stream, line))
        if len(rest) > LONGEST_PIECE:
            cut = len(rest) - len(rest) % LONGEST_PIECE
            records += b"".join(_pieces(stream, rest[:cut]))
            self._pending[stream] = rest[cut:]
        self._append(records)

    def close(self) -> None:
        """The container has ended: keep what is left of its last lines, and let followers go."""
        for stream, rest in self._pending.items():
            if rest:
                self._append(b"".join(_records(stream, rest)))
        self._closed = True
        self._more.set()
        self._file.close()

    def _append(self, records: bytes) -> None:
        if not records or self._closed:
            return
        if self._size > self._kept:
            self._file.close()
            self.path.replace(aside(self.path))
            self._file = self.path.open("ab", buffering=0)
            self._size = 0
            self._files += 1
        try:
            self._file.write(records)
        except OSError:  # a full disk is no reason to let the container go
            return
        self._size += len(records)
        self._more.set()

    async def read(self, options: LogOptions) -> AsyncIterator[bytes]:
        """The log in pieces, as `options` ask; with `follow` until the container has ended."""
        cut = _Cut(options)
        files, position = self._files, self._size
        for piece in read(self.path, options, position):
            yield cut.take(piece)
        while options.follow and not cut.full:
            if self._files - files > 1:  # too slow: the file that it read is gone
                files, position = self._files - 1, 0
            path = self.path if files == self._files else aside(self.path)
            lines, position = _since(path, position)
            for line in lines:
                if (shown := _shown(line, options)) and not cut.full:
                    yield cut.take(shown)
            if path != self.path:
                files, position = self._files, 0
            elif not lines and self._closed:
                return
            elif not lines:
                self._more.clear()
                await self._more.wait()


class _Cut:
    """Cuts what is read after `limit_bytes`."""

    def __init__(self, options: LogOptions) -> None:
        self._left = options.limit_bytes

    @property
    def full(self) -> bool:
        return self._left is not None and self._left <= 0

    def take(self, piece: bytes) -> bytes:
        if self._left is None:
            return piece
        piece = piece[: max(self._left, 0)]
        self._left -= len(piece)
        return piece


def read(path: Path, options: LogOptions, until: int | None = None) -> Iterator[bytes]:
    """The lines of a log that nobody writes to, or its first `until` bytes; `limit_bytes` is not applied."""
    whole = chain(_lines(aside(path)), _lines(path, until))
    shown: Iterator[bytes] = filter(None, (_shown(line, options) for line in whole))
    if options.tail_lines is not None:
        shown = iter(_last(shown, options.tail_lines))
    return shown


def _last(pieces: Iterator[bytes], count: int) -> list[bytes]:
    """The last `count` lines; a line may come in several pieces."""
    if count <= 0:
        return []
    lines: deque[list[bytes]] = deque(maxlen=count)
    complete = True
    for piece in pieces:
        if complete:
            lines.append([])
        lines[-1].append(piece)
        complete = piece.endswith(b"\n")
    return [piece for line in lines for piece in line]


async def cut(pieces: Iterator[bytes], options: LogOptions) -> AsyncIterator[bytes]:
    """The pieces up to `limit_bytes`."""
    left = _Cut(options)
    for piece in pieces:
        if left.full:
            return
        yield left.take(piece)


def aside(path: Path) -> Path:
    """Where a log's older half is."""
    return path.with_name(f"{path.name}.1")


def forget(path: Path) -> None:
    """Remove a log."""
    path.unlink(missing_ok=True)
    aside(path).unlink(missing_ok=True)


def _records(stream: str, line: bytes) -> Iterator[bytes]:
    full = max(0, (len(line) - 1) // LONGEST_PIECE) * LONGEST_PIECE
    yield from _pieces(stream, line[:full])
    yield b"%s %s F %s\n" % (_now(), stream.encode(), line[full:])


def _pieces(stream: str, text: bytes) -> Iterator[bytes]:
    for start in range(0, len(text), LONGEST_PIECE):
        yield b"%s %s P %s\n" % (_now(), stream.encode(), text[start : start + LONGEST_PIECE])


def _now() -> bytes:
    seconds, nanoseconds = divmod(time.time_ns(), 10**9)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09d}Z".encode()


def _lines(path: Path, until: int | None = None) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            seen = 0
            for line in file:
                seen += len(line)
                if until is not None and seen > until:
                    return
                yield line
    except FileNotFoundError:
        return


def _since(path: Path, position: int) -> tuple[list[bytes], int]:
    try:
        with path.open("rb") as file:
            file.seek(position)
            return file.readlines(), file.tell()
    except FileNotFoundError:
        return [], position


def _shown(record: bytes, options: LogOptions) -> bytes:
    """A record as it is asked for; empty when it is from before `since`."""
    parts = record.split(b" ", 3)
    if len(parts) != 4:
        return b""
    written, _, tag, text = parts
    if options.since is not None and _seconds(written) < options.since:
        return b""
    text = text if tag == b"F" else text[:-1]
    return written + b" " + text if options.timestamps else text


def _seconds(written: bytes) -> float:
    whole, _, fraction = written.rstrip(b"Z").partition(b".")
    return datetime.fromisoformat(whole.decode() + "+00:00").timestamp() + float(b"0." + (fraction or b"0"))
