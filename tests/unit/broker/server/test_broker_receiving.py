"""Frames are cut from what comes, in whatever pieces, and cost no more memory than what has come."""

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.broker.server.receiving import LEAST_ROOM, READ_AT_ONCE, TRUSTED_ROOM, FrameReceiver
from tidelog.broker.wire.errors import MalformedRequestError

MOST = 1 << 20


def receiver_of(most_bytes):
    return FrameReceiver(most_bytes, memoryview(bytearray(READ_AT_ONCE)))


def framed(*bodies):
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def receive(receiver, data, pieces):
    found = []
    for piece in pieces:
        chunk, data = data[:piece], data[piece:]
        while chunk:
            space = receiver.space()
            count = min(len(space), len(chunk))
            space[:count] = chunk[:count]
            del space
            found += [bytes(frame) for frame in receiver.received(count)]
            chunk = chunk[count:]
    return found


@given(
    st.lists(st.integers(0, 300_000).map(lambda n: bytes([n % 251]) * n), max_size=5),
    st.lists(st.integers(1, 70_000), max_size=40),
)
def test_frames_come_whole_in_whatever_pieces(bodies, pieces):
    data = framed(*bodies)
    assert receive(receiver_of(MOST), data, [*pieces, len(data)]) == bodies


def test_byte_by_byte():
    data = framed(b"a", b"", b"bc" * 40)
    receiver = receiver_of(MOST)
    assert receive(receiver, data, [1] * len(data)) == [b"a", b"", b"bc" * 40]
    assert receiver.room == 0


def test_an_announcement_costs_nothing():
    receiver = receiver_of(100 << 20)
    tracemalloc.start()
    receive(receiver, struct.pack(">i", 100 << 20) + b"x", [5])
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken < 2 * LEAST_ROOM
    assert receiver.room == LEAST_ROOM


def test_memory_grows_with_what_has_come():
    receiver = receiver_of(100 << 20)
    receive(receiver, struct.pack(">i", 100 << 20), [4])
    came = 0
    while came < 100 << 20:
        space = receiver.space()
        count = min(len(space), 100_000)
        del space
        frames = list(receiver.received(count))
        came += count
        assert receiver.room <= max(LEAST_ROOM, 4 * came)
    assert [len(frame) for frame in frames] == [100 << 20]


@pytest.mark.parametrize("size", [300_000, TRUSTED_ROOM, TRUSTED_ROOM + 1, 5 * TRUSTED_ROOM])
def test_a_client_of_large_frames_gets_room_at_once(size):
    """Its next frame is not moved while it comes, up to a bound."""
    receiver, data = receiver_of(100 << 20), framed(bytes(size))
    assert receive(receiver, data, [1_000, *[size] * 9]) == [bytes(size)]
    receive(receiver, data[:1_000], [1_000])
    assert receiver.room == min(size, TRUSTED_ROOM)


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "speaks HTTP on a PLAINTEXT listener"),
        (b"POST /topics HTTP/1.1\r\n", "speaks HTTP"),
        (b"PRI * HTTP/2.0\r\n", "speaks HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "speaks TLS on a PLAINTEXT listener"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "speaks SSH"),
        (struct.pack(">i", 2**31 - 1), "announces a request of 2147483647 bytes, and socket.request.max.bytes is 1048"),
        (struct.pack(">i", -1), "announces a request of -1 bytes"),
        (struct.pack(">i", MOST + 1), "announces a request of 1048577 bytes"),
    ],
)
def test_what_is_no_request_is_told_from_its_first_bytes(start, said):
    with pytest.raises(MalformedRequestError, match=said):
        receive(receiver_of(MOST), start, [3, len(start)])


def test_a_request_of_the_largest_size_is_taken():
    assert receive(receiver_of(MOST), framed(b"x" * MOST), [4 + MOST]) == [b"x" * MOST]


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_the_codec_takes_frames_of_any_size(size):
    receiver, data, found = receiver_of(MOST), framed(bytes(size)), []
    while data:
        space = receiver.space()
        count = min(len(space), len(data))
        space[:count] = data[:count]
        found += receiver.received(count)
        data = data[count:]
    assert [frame.readonly for frame in found] == [True]
