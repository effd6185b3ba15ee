"""Record batches made of Arrow columns at once: a step costs the same for a thousand records as for one.

A record is a length, attributes, two deltas, key, value and headers, each length and delta a varint (zigzag, 7 bits a
byte). Every part is a column of bytes here, and Arrow joins the columns row by row, into one buffer that is the batch.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.broker.records.batches import HEADER, LOG_APPEND_TIME_BIT, MAGIC, BatchHeader, sealed
from tidelog.broker.records.columns import EncodedBatch
from tidelog.log.delta import schema

I64 = npt.NDArray[np.int64]
# The varint of a null's length, -1, and that of no headers.
_NULL: Final = 1
# Offsets of a batch are at most this far behind its first.
MOST_DELTA: Final = 2**31 - 1
# Varints are written as tables while their sizes change no more often than this, and else one by one.
_MOST_TURNS: Final = 32
# What is joined at once, about, but for a batch that is larger: an array of bytes has 2 GiB at most.
_JOINED_BYTES: Final = 16 * 1024 * 1024
_NO_ATTRIBUTES: Final[I64] = np.zeros(1, np.int64)
_NO_HEADERS: Final = pa.scalar(b"\0", pa.binary())


def runs(records: pa.RecordBatch) -> Sequence[tuple[int, int]]:
    """Rows [start, end) that may share a batch: of one type of timestamps, and of one time where that is the log's."""
    kinds = records.column("timestampType").to_numpy()
    borders = kinds[1:] != kinds[:-1]
    if (kinds == schema.LOG_APPEND_TIME).any():
        ms = timestamps_ms(records)
        borders |= (ms[1:] != ms[:-1]) & (kinds[1:] == schema.LOG_APPEND_TIME)
    starts = [0, *(np.flatnonzero(borders) + 1).tolist(), len(kinds)]
    return list(pairwise(starts))


def timestamps_ms(records: pa.RecordBatch) -> I64:
    """Timestamps in ms since the epoch."""
    micros: I64 = records.column("timestamp").cast(pa.int64()).to_numpy()
    return micros // 1000


def arrow_batches(records: pa.RecordBatch, leader_epoch: int, codec: int, most_bytes: int) -> Iterator[EncodedBatch]:
    """A run of records as batches of at most `most_bytes`, or of one record that is larger. See `RecordCodec`."""
    rows = _Rows(records)
    kind = records.column("timestampType")[0].as_py()
    attributes = LOG_APPEND_TIME_BIT if kind == schema.LOG_APPEND_TIME else 0
    # aiokafka's builder stays a byte below its limit too.
    for start, end, body in rows.bodies(most_bytes - HEADER.size - 1):
        base, last = int(rows.offsets[start]), int(rows.offsets[end - 1])
        ms = rows.ms[start:end]
        header = BatchHeader(
            base, 0, leader_epoch, MAGIC, 0, attributes, last - base, int(ms[0]), int(ms.max()), -1, -1, -1, end - start
        )
        yield EncodedBatch(sealed(header, body, codec), base, last)


class _Numbers(NamedTuple):
    """What the records of one batch have of it, as zigzag codes: their lengths, and how far they are from its first."""

    lengths: I64
    times: I64
    deltas: I64


class _Rows:
    """Records and what does not depend on the batch they will be in."""

    def __init__(self, records: pa.RecordBatch) -> None:
        self.offsets: I64 = records.column("offset").to_numpy()
        self.ms = timestamps_ms(records)
        self._key, self._value = records.column("key"), records.column("value")
        self._key_length, self._value_length = _lengths(self._key), _lengths(self._value)
        sizes = _varint_sizes(self._key_length) + _varint_sizes(self._value_length)
        sizes += np.maximum(zigzag_back(self._key_length), 0) + np.maximum(zigzag_back(self._value_length), 0)
        self._headers = _headers(records)
        sizes += 1 if self._headers is None else _plain_lengths(self._headers)
        # Attributes and all that is written as it is; the deltas and the length itself are not in it.
        self._sizes = sizes + 1
        self._ends = np.cumsum(self._sizes)

    def bodies(self, most_bytes: int) -> Iterator[tuple[int, int, memoryview]]:
        """Bodies of `most_bytes` at most that hold all records: from which row, to before which one, and the bytes.

        Several bodies are joined at once, as each step costs the same for one of them.
        """
        start, rows = 0, len(self.offsets)
        while start < rows:
            first, before, borders = start, int(self._ends[start] - self._sizes[start]), [start]
            parts: list[_Numbers] = []
            while start < rows and (not parts or self._ends[start] - before <= _JOINED_BYTES):
                part = self._numbers(start, most_bytes)
                start += len(part.lengths)
                parts.append(part)
                borders.append(start)
            joined = self._joined(
                first, parts[0] if len(parts) == 1 else _Numbers(*map(np.concatenate, zip(*parts, strict=True)))
            )
            ends = _borders(joined)[np.array(borders) - first].tolist()
            data = memoryview(joined.buffers()[2])
            for (begin, end), (at, behind) in zip(pairwise(borders), pairwise(ends), strict=True):
                yield begin, end, data[at:behind]

    def _numbers(self, start: int, most_bytes: int) -> _Numbers:
        """Those of the records from `start` on that fit into one body."""
        before = int(self._ends[start - 1]) if start else 0
        # A record has three bytes more at least, so that these are never too few rows, and seldom many too many.
        end = max(int(np.searchsorted(self._ends, before + most_bytes, "right")), start + 1)
        end = min(end, int(np.searchsorted(self.offsets, self.offsets[start] + MOST_DELTA, "right")))
        times = _zigzag(self.ms[start:end] - self.ms[start])
        deltas = _zigzag(self.offsets[start:end] - self.offsets[start])
        lengths = self._sizes[start:end] + _varint_sizes(times) + _varint_sizes(deltas)
        coded = _zigzag(lengths)
        fits = int(np.searchsorted(np.cumsum(lengths + _varint_sizes(coded)), most_bytes, "right"))
        count = max(fits, 1)
        return _Numbers(coded[:count], times[:count], deltas[:count])

    def _joined(self, start: int, numbers: _Numbers) -> pa.Array:
        """The bytes of each record from `start` on, of as many as there are numbers."""
        rows = slice(start, start + len(numbers.lengths))
        return pc.binary_join_element_wise(
            _varints(numbers.lengths, _NO_ATTRIBUTES, numbers.times, numbers.deltas, self._key_length[rows]),
            self._key[rows],
            _varints(self._value_length[rows]),
            self._value[rows],
            _NO_HEADERS if self._headers is None else self._headers[rows],
            b"",
            null_handling="replace",
            null_replacement=b"",
        )


def _headers(records: pa.RecordBatch) -> pa.Array | None:
    """The headers of each record as bytes; None where no record has any."""
    if "headers" not in records.schema.names or records.column("headers").null_count == records.num_rows:
        return None
    column = records.column("headers").fill_null([])
    flat, counts = pc.list_flatten(column), pc.list_value_length(column).to_numpy().astype(np.int64)
    key, value = pc.struct_field(flat, "key").cast(pa.binary()), pc.struct_field(flat, "value")
    each = pc.binary_join_element_wise(
        _varints(_lengths(key)),
        key,
        _varints(_lengths(value)),
        value,
        b"",
        null_handling="replace",
        null_replacement=b"",
    )
    # The headers of a record lie side by side, and so do their bytes.
    ends = np.concatenate([[0], np.cumsum(counts)])
    borders = _borders(each)[ends]
    whole = pa.Array.from_buffers(pa.binary(), len(counts), [None, pa.py_buffer(borders), each.buffers()[2]])
    return pc.binary_join_element_wise(_varints(_zigzag(counts)), whole, b"")


def _borders(array: pa.Array) -> npt.NDArray[np.int32]:
    """Where each value of a binary array begins, and where the last one ends."""
    offsets = np.frombuffer(array.buffers()[1], np.int32) if len(array) else np.zeros(1, np.int32)
    return offsets[array.offset : array.offset + len(array) + 1]


def _plain_lengths(array: pa.Array) -> I64:
    lengths: I64 = np.diff(_borders(array)).astype(np.int64)
    return lengths


def _lengths(array: pa.Array) -> I64:
    """Zigzag codes of the lengths of values, -1 for a null."""
    return _zigzag(pc.fill_null(pc.binary_length(array), -1).to_numpy().astype(np.int64))


def _zigzag(numbers: I64) -> I64:
    return (numbers << 1) ^ (numbers >> 63)


def zigzag_back(codes: I64) -> I64:
    """The numbers of zigzag codes, which are not negative."""
    return (codes >> 1) ^ -(codes & 1)


def _varint_sizes(codes: I64) -> I64:
    sizes = np.ones(len(codes), np.int64)
    most, bound = int(codes.max(initial=0)), 1 << 7
    while bound <= most:
        sizes += codes >= bound
        bound <<= 7
    return sizes


def _varints(*columns: I64) -> Any:
    """Varints of zigzag codes, those of all columns side by side, one a row; a scalar where all rows are the same.

    A column of one code is that of each row.
    """
    # A column as one code where that is all it has, else as the codes and the sizes of their varints.
    parts: list[tuple[I64, I64] | int] = []
    for codes in columns:
        same = len(codes) == 1 or (len(codes) > 0 and bool((codes == codes[0]).all()))
        parts.append(int(codes[0]) if same else (codes, _varint_sizes(codes)))
    if all(isinstance(part, int) for part in parts) and columns[0].size:
        return pa.scalar(b"".join(_varint(part) for part in parts if isinstance(part, int)), pa.binary())
    rows = max(map(len, columns))
    borders = np.zeros(rows + 1, np.int32)
    sizes: Any = sum(len(_varint(part)) if isinstance(part, int) else part[1] for part in parts)
    np.cumsum(np.broadcast_to(sizes, rows), out=borders[1:])
    data = np.empty(borders[-1], np.uint8)
    turns = _turns([part[1] for part in parts if not isinstance(part, int)])
    if turns is not None:
        for start, end in pairwise([0, *turns, rows]):
            _put_table(data[borders[start] : borders[end]].reshape(end - start, -1), parts, slice(start, end))
    else:
        at: I64 = borders[:-1].astype(np.int64)
        for part in parts:
            if isinstance(part, int):
                for byte in _varint(part):
                    data[at] = byte
                    at += 1
            else:
                _put(data, at, *part)
                at += part[1]
    return pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(borders), pa.py_buffer(data)])


def _turns(sizes: Sequence[I64]) -> list[int] | None:
    """The rows at which a column's size is another one than in the row before; None where they are many."""
    turns = [np.flatnonzero(one[1:] != one[:-1]) + 1 for one in sizes]
    if sum(map(len, turns)) > _MOST_TURNS:
        return None
    return sorted({row for rows in turns for row in rows.tolist()})


def _put_table(table: npt.NDArray[np.uint8], parts: Sequence[tuple[I64, I64] | int], rows: slice) -> None:
    """Write varints of which each column has one size, a row of them a row."""
    place = 0
    for part in parts:
        if isinstance(part, int):
            for byte in _varint(part):
                table[:, place] = byte
                place += 1
            continue
        codes, size = part[0][rows], int(part[1][rows.start])
        for _ in range(size - 1):
            table[:, place] = codes & 127 | 128
            codes, place = codes >> 7, place + 1
        table[:, place] = codes
        place += 1


def _put(data: npt.NDArray[np.uint8], at: I64, codes: I64, sizes: I64) -> None:
    """Write the varints of codes at these places."""
    left, place = int(sizes.max()), 0
    while left > 1:
        more = sizes > 1
        data[at + place] = (codes & 127) | (more.astype(np.int64) << 7)
        if not more.all():
            at, codes, sizes = at[more], codes[more], sizes[more]
        codes, sizes, left, place = codes >> 7, sizes - 1, left - 1, place + 1
    data[at + place] = codes


def _varint(code: int) -> bytes:
    coded = bytearray()
    while code >= 128:
        coded.append(code & 127 | 128)
        code >>= 7
    return bytes((*coded, code))
