"""Records that are noted become the segments that their columns become, byte by byte."""

import random

import pytest
from support.native import native_records, native_segments
from support.record_batches import built
from support.strange_batches import NOW_MS, RULES, as_records

from tidelog.log.config.topics_and_lakes import Codec, UnaskedCodec
from tidelog.log.segments.noted import NotedPiece, NotedRecords
from tidelog.log.segments.writer import write_noted_segment, write_small_segment

CODECS = Codec("none", None), Codec("lz4", None), UnaskedCodec("zstd", None)
KEYS = {
    "no keys": lambda _: None,
    "keys of their own": lambda n: b"k%d" % n,
    "some keys": lambda n: b"k%d" % n if n % 3 else None,
    "keys that come again": lambda n: b"k%d" % (n % 7),
}


@pytest.fixture(autouse=True)
def _native():
    native_segments()


def noted(batches, partitions=None):
    """Batches of partition 0, or of one each, as a broker notes them: in two goes."""
    pieces = []
    for some in (batches[: len(batches) // 2], batches[len(batches) // 2 :]):
        notes = native_records().noted(some, RULES[1], 1 << 30)
        assert notes is not None
        pieces += [NotedPiece(0, notes, at, at + 1, count) for at, count in enumerate(notes.counts)]
    return NotedRecords([p._replace(partition=q) for p, q in zip(pieces, partitions or [0] * len(pieces), strict=True)])


def made(seed, key):
    """Batches of some records each, of one length or of many, with values that are null among them."""
    rng, number, batches = random.Random(seed), 0, []
    for _ in range(rng.choice((2, 3, 9))):
        records = []
        for _ in range(rng.choice((1, 2, 60, 700))):
            size = rng.choice((100, 100, rng.randrange(300), rng.randrange(5_000)))
            value = None if rng.random() < 0.02 * (seed % 2) else rng.randbytes(size)
            records.append((NOW_MS + rng.randrange(1 + seed % 3 * 1_000), key(number), value, []))
            number += 1
        batches.append(built(records, rng.choice((0, 0, 3))))
    return batches


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("seed", range(8))
def test_a_segment_has_the_bytes_of_one_of_columns(seed, key):
    records = noted(made(seed, key))
    ((partition, part),) = records.parts(as_records)
    assert (partition, part.count) == (0, records.num_rows)
    for codec in CODECS:
        of_columns = write_small_segment(part.table(), codec, part.size)
        of_notes = write_noted_segment([part], codec, part.size)
        if of_notes is None:  # a dictionary of keys is Arrow's to write
            assert key is KEYS["keys that come again"]
            assert records.num_rows > 100
        else:
            assert of_notes == of_columns


def test_partitions_keep_their_records_and_these_their_order():
    batches = [built([(NOW_MS, None, b"%d-%d" % (at, n), []) for n in range(3)]) for at in range(6)]
    early, late = noted(batches[:4], [0, 0, 2, 5]), noted(batches[4:], [0, 2])
    together = NotedRecords.together([early, late])
    values = {p: part.table()["value"].to_pylist() for p, part in together.parts(as_records)}
    assert values == {
        p: [b"%d-%d" % (at, n) for at in own for n in range(3)] for p, own in {0: [0, 1, 4], 2: [2, 5], 5: [3]}.items()
    }
    assert together.table["value"].to_pylist() == [value for own in values.values() for value in own]


@pytest.mark.parametrize(
    "record",
    [(NOW_MS, None, b"v", [("h", b"")]), (-1, None, b"v", []), (NOW_MS + 1, b"k", b"v", []), (NOW_MS, None, b"v", [])],
    ids=["headers", "no time", "too late", "no key"],
)
def test_what_is_not_plain_is_known(record):
    plain = noted([built([(NOW_MS, b"k", b"v", [])])] * 2)
    other = NotedRecords.together([plain, noted([built([(NOW_MS, b"k", b"v", []), record])] * 2)])
    assert plain.are_plain(NOW_MS, NOW_MS, with_keys=True)
    assert not other.are_plain(NOW_MS, NOW_MS, with_keys=True)
    assert other.are_plain(NOW_MS, NOW_MS, with_keys=False) == (record == (NOW_MS, None, b"v", []))


def test_none_are_noted_where_a_batch_is_not_right():
    right, records = built([(NOW_MS, None, b"v", [])]), native_records()
    assert records.noted([right], RULES[1], len(right)) is not None
    assert records.noted([right], RULES[1], len(right) - 1) is None
    assert records.noted([right, right[:-1] + b"x"], RULES[1], 1 << 20) is None
    assert records.noted([right], RULES[2], 1 << 20) is None  # a compacted topic
    broken = built([(NOW_MS, None, b"v" * 500, [])], 3)
    assert records.noted([right, broken[:-40] + bytes(40)], RULES[1], 1 << 20) is None
