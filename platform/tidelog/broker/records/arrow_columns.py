"""Records of many batches read at once: a step costs the same for a thousand records as for one.

It reads what nearly all batches are: well formed, and without headers. All else is left to the caller's other reader,
which also says what is wrong. Each length says where the next one is: where many records are of one length, one
comparison finds them all, and else a loop follows them.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidelog.broker.records.arrow_batches import zigzag_back
from tidelog.broker.records.batches import BatchHeader
from tidelog.broker.records.columns import COLUMNS, timestamp_column
from tidelog.log.delta import schema

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
# Behind the last record, so that a varint that breaks off there ends.
_GUARD: Final = bytes(16)
# Bits of the longest varints that are read here: of 5 bytes, as Kafka has it, and of times that any clock shows.
_INT_BITS: Final = 35
_TIME_BITS: Final = 56
# The least records of a batch that are worth a look whether they are of one length.
_MANY: Final = 256
# Where fewer than this are of one length, the records in the next bytes are taken one by one: in this number of bytes,
# then in twice as many.
_SOME: Final = 32
_SOME_BYTES: Final = 4096
# The most records whose lengths are compared at once, however few of them are alike.
_AT_ONCE: Final = 1024


class _NotPlainError(Exception):
    """Records that are read one by one."""


def arrow_columns(headers: Sequence[BatchHeader], bodies: Sequence[bytes | memoryview]) -> pa.RecordBatch | None:
    """The records of unpacked batches, as `COLUMNS`; None where they are not all plain and well formed.

    `bodies`: what follows each header; less than 2 GiB in all.
    """
    data = b"".join((*bodies, _GUARD))
    counts = np.array([header.count for header in headers])
    try:
        starts = _starts(data, zip(headers, bodies, strict=True))
        return _columns(data, starts, headers, counts)
    except _NotPlainError:
        return None


def _starts(data: bytes, batches: Iterable[tuple[BatchHeader, bytes | memoryview]]) -> I64:
    """Where each record begins, and where the last one ends."""
    octets = np.frombuffer(data, np.uint8)
    parts: list[I64] = []
    alone: list[int] = []  # behind the parts
    add, rows, at, end = alone.append, 0, 0, 0
    for header, body in batches:
        end += len(body)
        expected, some_bytes = rows + len(alone) + header.count, _SOME_BYTES
        while at < end:
            if expected - rows - len(alone) >= _MANY:
                alike = _alike(data, octets, at, end)
                if alike:
                    parts += [np.array(alone, np.int64), np.arange(alike.start, alike.stop, alike.step)]
                    rows += len(alone) + len(alike)
                    alone.clear()
                at = alike.stop
                if len(alike) >= _SOME:
                    continue
            until = min(at + some_bytes, end)
            while at < until:
                add(at)
                first = data[at]
                if first < 128:
                    at += 1 + (first >> 1)
                elif (second := data[at + 1]) < 128:
                    at += 2 + (second << 6) + ((first & 127) >> 1)
                else:
                    at += _step(data, at)[0]
            some_bytes *= 2
        if at != end or rows + len(alone) != expected:
            raise _NotPlainError
    add(end)
    return np.concatenate([*parts, np.array(alone, np.int64)])


def _alike(data: bytes, octets: U8, at: int, end: int) -> range:
    """Where the records from `at` on begin that are of one length, some at most; it stops where the next one begins.

    A record with the same length before it as the one before is followed by the next one at the same distance, so that
    these lengths alone are compared.
    """
    step, size = _step(data, at)
    count = min((end - at) // step, _AT_ONCE)
    first = data[at : at + size]
    if not count or data[at + step : at + step + size] != first:
        return range(at, at, step)
    rows = octets[at : at + count * step].reshape(count, step)
    for place in range(size):
        same = rows[:count, place] == first[place]
        if not same.all():
            count = int(same.argmin())
    return range(at, at + count * step, step)


def _step(data: bytes, at: int) -> tuple[int, int]:
    """The bytes of a record and of its length, and those of its length alone."""
    code = 0
    for place in range(5):
        byte = data[at + place]
        code |= (byte & 127) << 7 * place
        if byte < 128:
            return place + 1 + (code >> 1), place + 1
    raise _NotPlainError


def _columns(data: bytes, starts: I64, headers: Sequence[BatchHeader], counts: I64) -> pa.RecordBatch:
    octets, ends = np.frombuffer(data, np.uint8), starts[1:]
    rows, last = len(ends), int(starts[-1])
    lengths, at = _varints(octets, starts[:-1], last)
    _require((lengths >= 0).all() and (octets[at] == 0).all())  # attributes, of which there are none yet
    times, at = _varints(octets, at + 1, last, _TIME_BITS)
    deltas, at = _varints(octets, at, last)
    first_rows = np.cumsum(counts) - counts
    _require((deltas == np.arange(rows) - np.repeat(first_rows, counts)).all())
    key_lengths, keys = _varints(octets, at, last)
    at = keys + np.maximum(key_lengths, 0)
    value_lengths, values = _varints(octets, at, last)
    at = values + np.maximum(value_lengths, 0)
    _require(min(int(key_lengths.min()), int(value_lengths.min())) >= -1)
    # Where the record ends, the number of its headers is left to come: 0.
    _require((at == ends - 1).all() and not octets[at].any())
    # All that lies between keys and values makes them one array, from which they are taken.
    borders = np.empty(4 * rows + 1, np.int32)
    borders[0] = 0
    borders[1::4], borders[2::4] = keys, keys + np.maximum(key_lengths, 0)
    borders[3::4], borders[4::4] = values, at
    pieces = pa.Array.from_buffers(pa.binary(), 4 * rows, [None, pa.py_buffer(borders), pa.py_buffer(data)])
    timestamps = np.repeat(np.array([header.first_timestamp for header in headers]), counts) + times
    arrays = [
        _taken(pieces, 1, key_lengths),
        _taken(pieces, 3, value_lengths),
        timestamp_column(timestamps),
        pa.nulls(rows, schema.HEADERS),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


def _taken(pieces: pa.Array, first: int, lengths: I64) -> pa.Array:
    """Every fourth piece from `first` on, null where its length says so."""
    places = np.arange(first, len(pieces), 4)
    null = lengths < 0
    return pieces.take(pa.array(places, mask=null) if null.any() else pa.array(places))


def _varints(octets: U8, at: I64, end: int, most_bits: int = _INT_BITS) -> tuple[I64, I64]:
    """The numbers at these places, all before `end`, and where what follows them begins."""
    _require(int(at.max()) < end and int(at.min()) >= 0)
    byte, behind = octets.take(at), at + 1
    more = byte > 127
    if not more.any():
        return zigzag_back(byte.astype(np.int64)), behind
    second = octets.take(behind)  # a step for all rows is quicker than one for some
    codes = (byte & 127).astype(np.int64)
    codes |= ((second & 127) * more).astype(np.int64) << 7
    behind += more
    rows, bits = np.flatnonzero(more & (second > 127)), 14
    while len(rows):
        _require(bits < most_bits)
        byte = octets.take(behind[rows])
        codes[rows] |= (byte & 127).astype(np.int64) << bits
        behind[rows] += 1
        rows, bits = rows[byte > 127], bits + 7
    return zigzag_back(codes), behind


def _require(holds: object) -> None:
    if not holds:
        raise _NotPlainError
