"""SPDY/3.1 without any connection: what bytes mean, however they are cut, and what is answered."""

from __future__ import annotations

import hashlib
import zlib
from itertools import pairwise
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spdy_client import SpdyClient, control, data, reset, window_update

from gpuworkshop.lab.api.streams import spdy
from gpuworkshop.lab.api.streams.spdy import Session
from gpuworkshop.lab.api.streams.spdy_events import (
    DataReceived,
    Event,
    ProtocolError,
    StreamEnded,
    StreamOpened,
    StreamReset,
    WindowsOpened,
)
from gpuworkshop.lab.api.streams.spdy_headers import DICTIONARY, BadHeaders, HeaderReader, HeaderWriter

TEXT = st.text(st.characters(max_codepoint=255), max_size=30)
HEADERS = st.dictionaries(TEXT.map(str.lower), TEXT, max_size=8)


def opened(*streams: int) -> tuple[SpdyClient, Session]:
    """A client and a session with these streams, accepted."""
    client, session = SpdyClient(), Session()
    for stream in streams:
        session.receive(client.syn_stream(stream, {}))
        session.reply(stream)
    session.take()
    return client, session


def cut(whole: bytes, places: list[int]) -> list[bytes]:
    ends = [0, *sorted(place % (len(whole) + 1) for place in places), len(whole)]
    return [whole[start:end] for start, end in pairwise(ends)]


def joined(events: list[Event]) -> list[Event]:
    """The same with the pieces of one frame, or of several in a row, in one."""
    found: list[Event] = []
    for event in events:
        last = found[-1] if found else None
        if isinstance(event, DataReceived) and isinstance(last, DataReceived) and event.stream == last.stream:
            found[-1] = DataReceived(event.stream, last.data + event.data)
        else:
            found.append(event)
    return found


def test_the_dictionary_is_spdys() -> None:
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2
    digest = "51d27341373f923f3cd88e1eb7162aeaa3723d7585ff2399201dc06498407f02"
    assert hashlib.sha256(DICTIONARY).hexdigest() == digest


@given(st.lists(HEADERS, max_size=6))
def test_header_blocks_come_back(blocks: list[dict[str, str]]) -> None:
    writer, reader = HeaderWriter(), HeaderReader()
    assert [reader.unpack(writer.pack(block)) for block in blocks] == blocks


@given(st.binary(max_size=200))
def test_damaged_header_blocks_are_refused(block: bytes) -> None:
    packed = zlib.compressobj(zdict=DICTIONARY)
    damaged = packed.compress(block) + packed.flush(zlib.Z_SYNC_FLUSH)
    try:
        headers = HeaderReader().unpack(damaged)
    except BadHeaders:
        return
    assert sum(len(name) + len(value) + 8 for name, value in headers.items()) <= len(block)


def test_a_header_block_that_unpacks_to_too_much_is_refused() -> None:
    packed = zlib.compressobj(zdict=DICTIONARY)
    bomb = packed.compress(b"\0" * (1 << 20)) + packed.flush(zlib.Z_SYNC_FLUSH)
    with pytest.raises(BadHeaders, match="more than"):
        HeaderReader().unpack(bomb)


@given(
    st.lists(st.tuples(HEADERS, st.lists(st.binary(max_size=300), max_size=4), st.booleans()), max_size=5),
    st.lists(st.integers(0, 10_000), max_size=12),
)
def test_events_do_not_depend_on_how_the_bytes_are_cut(
    streams: list[tuple[dict[str, str], list[bytes], bool]], places: list[int]
) -> None:
    client, whole, expected = SpdyClient(), b"", list[Event]()
    for index, (headers, pieces, ends) in enumerate(streams):
        number = 2 * index + 1
        whole += client.syn_stream(number, headers)
        expected.append(StreamOpened(number, headers))
        for piece in pieces:
            whole += data(number, piece)
            expected += [DataReceived(number, piece)] if piece else []
        if ends:
            whole += data(number, b"", flags=1)
            expected.append(StreamEnded(number))
    session = Session()
    events = [event for piece in cut(whole, places) for event in session.receive(piece)]
    assert joined(events) == joined(expected)
    assert session.take() == b""


@given(st.binary(max_size=400))
def test_any_bytes_are_understood_or_refused(noise: bytes) -> None:
    session = Session()
    try:
        events = session.receive(control(1, noise[:40]) + noise)
    except ProtocolError:
        return
    assert all(
        isinstance(event, StreamOpened | DataReceived | StreamEnded | StreamReset | WindowsOpened)
        for event in events
    )


@given(st.lists(st.tuples(st.sampled_from([1, 3]), st.binary(min_size=1, max_size=100)), max_size=20))
def test_what_is_sent_arrives(pieces: list[tuple[int, bytes]]) -> None:
    client, session = opened(1, 3)
    for stream, piece in pieces:
        session.send(stream, piece)
    session.finish(3)
    frames = client.read(session.take())
    for stream in (1, 3):
        sent = b"".join(piece for number, piece in pieces if number == stream)
        assert b"".join(frame.payload for frame in frames if frame.stream == stream) == sent
    assert [frame.stream for frame in frames if frame.flags == spdy.FIN] == [3]


@given(st.data())
def test_windows_are_kept_once_the_client_speaks_of_them(drawn: st.DataObject) -> None:
    """Against a model: what a client allows is never exceeded, and all of it can be used."""
    client, session = opened(1, 3)
    initial = drawn.draw(st.integers(0, 5_000))
    session.receive(control(4, pack(">III", 1, spdy.INITIAL_WINDOW_SIZE, initial)))
    allowed = {0: spdy.INITIAL_WINDOW, 1: initial, 3: initial}
    for _ in range(drawn.draw(st.integers(1, 20))):
        stream = drawn.draw(st.sampled_from([1, 3]))
        if drawn.draw(st.booleans()):
            target = drawn.draw(st.sampled_from([0, stream]))
            more = drawn.draw(st.integers(1, 30_000))
            assert session.receive(window_update(target, more)) == [WindowsOpened()]
            allowed[target] += more
        room = session.room(stream)
        assert room == min(allowed[0], allowed[stream])
        session.send(stream, bytes(room))
        allowed[0] -= room
        allowed[stream] -= room
        assert sum(len(frame.payload) for frame in client.read(session.take())) == room


def test_a_client_that_never_speaks_of_windows_is_not_held_back() -> None:
    _, session = opened(1)
    for _ in range(4):
        session.send(1, bytes(spdy.INITIAL_WINDOW))
    assert session.room(1) == spdy.LARGEST_DATA


def test_a_smaller_initial_window_may_leave_less_than_nothing() -> None:
    _, session = opened(1)
    session.send(1, bytes(1000))
    assert session.receive(control(4, pack(">III", 1, spdy.INITIAL_WINDOW_SIZE, 400))) == [WindowsOpened()]
    assert session.room(1) == 0
    session.receive(window_update(1, 700))
    assert session.room(1) == 100


@given(st.lists(st.integers(1, 20_000), max_size=40))
def test_what_has_gone_on_is_granted_anew(consumed: list[int]) -> None:
    client, session = opened(1)
    for count in consumed:
        session.consumed(1, count)
    frames = client.read(session.take())
    for target in (0, 1):
        granted = sum(int.from_bytes(frame.payload) for frame in frames if frame.stream == target)
        assert all(frame.kind == spdy.WINDOW_UPDATE for frame in frames)
        assert sum(consumed) - spdy.INITIAL_WINDOW // 2 < granted <= sum(consumed)


def test_a_window_beyond_two_gigabytes() -> None:
    client, session = opened(1)
    assert session.receive(window_update(1, spdy.LARGEST_WINDOW)) == [StreamReset(1)]
    (frame,) = client.read(session.take())
    assert (frame.kind, frame.stream, frame.payload) == (spdy.RST_STREAM, 1, pack(">I", 7))
    with pytest.raises(ProtocolError, match="window"):
        session.receive(window_update(0, spdy.LARGEST_WINDOW))


def test_a_reply_accepts_a_stream() -> None:
    client, session = SpdyClient(), Session()
    session.receive(client.syn_stream(1, {"streamtype": "data"}))
    session.reply(1)
    (frame,) = client.read(session.take())
    assert (frame.kind, frame.flags, frame.stream) == (spdy.SYN_REPLY, 0, 1)
    assert client.headers(frame) == pack(">I", 0)


def test_a_ping_of_the_client_comes_back_and_no_other() -> None:
    _, session = opened()
    ping = control(6, pack(">I", 7))
    assert session.receive(ping + control(6, pack(">I", 8))) == []
    assert session.take() == ping


def test_a_stream_that_both_have_ended_takes_no_more() -> None:
    client, session = opened(1)
    session.finish(1)
    session.finish(1)
    assert len(client.read(session.take())) == 1
    assert session.receive(data(1, b"last", flags=1)) == [DataReceived(1, b"last"), StreamEnded(1)]
    session.send(1, b"more")
    assert session.take() == b""


def test_a_stream_that_was_opened_and_ended_at_once() -> None:
    client, session = SpdyClient(), Session()
    assert session.receive(client.syn_stream(1, {}, flags=1)) == [StreamOpened(1, {}), StreamEnded(1)]
    session.send(1, b"why")
    assert [frame.payload for frame in client.read(session.take())] == [b"why"]


def test_a_unidirectional_stream_takes_nothing() -> None:
    client, session = SpdyClient(), Session()
    session.receive(client.syn_stream(1, {}, flags=2))
    session.send(1, b"why")
    assert session.take() == b""


def test_a_reset_stream_takes_nothing_and_data_under_way_is_dropped() -> None:
    client, session = opened(1)
    assert session.receive(reset(1)) == [StreamReset(1)]
    session.send(1, b"more")
    assert session.receive(data(1, bytes(40_000))) == []
    (frame,) = client.read(session.take())
    assert (frame.kind, frame.stream, int.from_bytes(frame.payload)) == (spdy.WINDOW_UPDATE, 0, 40_000)


def test_data_of_a_stream_that_never_was_is_refused() -> None:
    client, session = opened(1)
    assert session.receive(data(5, b"lost")) == []
    (frame,) = client.read(session.take())
    assert (frame.kind, frame.stream, frame.payload) == (spdy.RST_STREAM, 5, pack(">I", spdy.INVALID_STREAM))


def test_headers_within_a_stream_may_end_it_and_those_after_still_unpack() -> None:
    client, session = opened(1)
    more = control(8, pack(">I", 1) + client.block({"a": "b"}), flags=1)
    assert session.receive(more) == [StreamEnded(1)]
    assert session.receive(client.syn_stream(3, {"a": "b"})) == [StreamOpened(3, {"a": "b"})]


def test_frames_of_no_use_here_are_passed_over() -> None:
    client, session = opened()
    goaway, unknown = control(7, pack(">II", 0, 0)), control(99, b"whatever")
    other_setting = control(4, pack(">III", 1, 4, 100))
    whole = goaway + unknown + other_setting + client.syn_stream(1, {})
    assert session.receive(whole) == [StreamOpened(1, {})]
    assert session.room(1) == spdy.LARGEST_DATA


@pytest.mark.parametrize("number", [1, 2, 4])
def test_streams_have_odd_numbers_that_rise(number: int) -> None:
    client, session = opened(1)
    with pytest.raises(ProtocolError, match="a stream numbered"):
        session.receive(client.syn_stream(number, {}))


@pytest.mark.parametrize(
    "bad",
    [
        b"\x80\x02\x00\x01\x00\x00\x00\x00",
        b"\x80\x03\x00\x01\x00\xff\xff\xff",
        control(1, b"short"),
        control(3, b"short"),
        control(9, b""),
    ],
    ids=["another version", "too long", "no stream", "no status", "no window"],
)
def test_what_is_not_spdy_ends_the_connection(bad: bytes) -> None:
    with pytest.raises(ProtocolError):
        Session().receive(bad)


def test_goodbye_names_the_last_stream() -> None:
    client, session = opened(1, 3)
    session.go_away(spdy.PROTOCOL_ERROR)
    (frame,) = client.read(session.take())
    assert (frame.kind, frame.stream, frame.payload) == (spdy.GOAWAY, 3, pack(">I", 1))
