"""The native look at LZ4 frames: all that unpacks has the size that it says, whatever was done to the bytes."""

import random
import struct

import cramjam
import pyarrow as pa
import pytest
from aiokafka.codec import lz4_encode
from support.native import native_lz4

from tidelog.broker.records import unpacking
from tidelog.broker.records.batches import LZ4
from tidelog.broker.records.errors import CorruptBatchError
from tidelog.broker.records.unpacking import unpacked

MOST = 1 << 20


@pytest.fixture(autouse=True)
def _native():
    native_lz4()


def frames(rng):
    """A body, and a frame of it."""
    size = rng.choice((1, 4, 5, 12, 13, 70, 300, 5_000, 70_000))
    body = rng.choice((rng.randbytes(size), bytes(size), b"ab" * size, rng.randbytes(3) * size, b"x" * size + b"end"))
    made = rng.randrange(3)
    if made == 0:
        return body, lz4_encode(body, 1)
    if made == 1:
        return body, pa.Codec("lz4").compress(body, asbytes=True)
    linked, checked = rng.random() < 0.5, rng.random() < 0.5
    compressor = cramjam.lz4.Compressor(level=rng.choice((1, 9)), content_checksum=checked, block_linked=linked)
    compressor.compress(body)
    return body, bytes(compressor.finish())


def by_stream(packed, monkeypatch, most=MOST):
    with monkeypatch.context() as without:
        without.setattr(unpacking, "NATIVE_LZ4", None)
        return outcome(packed, most)


def outcome(packed, most=MOST):
    try:
        return bytes(unpacked(LZ4, memoryview(packed), most))
    except CorruptBatchError as e:
        return str(e)


@pytest.mark.parametrize("seed", range(40))
def test_strange_frames_are_unpacked_and_refused_as_by_the_stream(seed, monkeypatch):
    """So are frames of which bytes are others, are missing, or are there twice."""
    rng = random.Random(seed)
    sized = 0
    for _ in range(40):
        body, frame = frames(rng)
        looked = len(frame) <= unpacking._MOST_ADDED_UP
        sized += looked and unpacking.NATIVE_LZ4.unpacked_size(frame, MOST) == len(body)
        assert outcome(frame) == body
        for _ in range(20):
            strange = bytearray(frame)
            for _ in range(rng.choice((1, 1, 2, 4))):
                at = rng.randrange(min(len(strange), rng.choice((20, 70_000))))
                kind = rng.randrange(5)
                if kind < 3:
                    strange[at] = rng.choice((0, 1, 15, 0xF0, 0xFF, rng.randrange(256)))
                elif kind == 3:
                    del strange[at : at + rng.choice((1, 4, 30)) + 1]
                    strange += b"\0"
                else:
                    strange[at:at] = strange[at : at + 9]
            most = rng.choice((MOST, len(body), max(1, len(body) - 1)))
            assert outcome(strange, most) == by_stream(strange, monkeypatch, most)
    assert sized > 10


@pytest.mark.parametrize(
    "packed",
    [b"", b"\x04\x22\x4d\x18", lz4_encode(b"a", 1) * 2, lz4_encode(b"a", 1) + b"\0",
     struct.pack("<IBBB", 0x184D2204, 0x40, 0x40, 0) + struct.pack("<I", 2**31 - 1) + b"a"],
    ids=["nothing", "a magic", "two frames", "a byte more", "a block of 2 GiB"],
)  # fmt: skip
def test_what_is_no_frame_alone_has_no_size(packed):
    assert unpacking.NATIVE_LZ4.unpacked_size(packed, MOST) == -1


def test_a_length_that_goes_on_is_not_followed_beyond_what_may_be_unpacked():
    body = bytes(1 << 20)
    frame = pa.Codec("lz4").compress(body, asbytes=True)
    assert unpacking.NATIVE_LZ4.unpacked_size(frame, len(body)) == len(body)
    assert unpacking.NATIVE_LZ4.unpacked_size(frame, len(body) - 1) == -1
    assert "unpacks to more than" in outcome(frame, len(body) - 1)
