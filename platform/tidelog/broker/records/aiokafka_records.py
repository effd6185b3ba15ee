"""Record batches read and written by aiokafka's classes, which are compiled."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, Final

import numpy as np
import pyarrow as pa
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from tidelog.broker.records.arrow_batches import MOST_DELTA, arrow_batches, runs, timestamps_ms
from tidelog.broker.records.arrow_columns import arrow_columns
from tidelog.broker.records.batches import (
    CODEC_BITS,
    HEADER,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NONE,
    BatchHeader,
    header_of,
    sealed,
)
from tidelog.broker.records.columns import (
    COLUMNS,
    NO_TIMESTAMP,
    Columns,
    EncodedBatch,
    RecordRules,
    record_sizes,
    timestamp_column,
)
from tidelog.broker.records.errors import CorruptBatchError
from tidelog.broker.records.unpacking import unpacked
from tidelog.log.base.errors import InvalidRecordError, TidelogError
from tidelog.log.delta import schema

# A batch may always grow by this factor; what is beyond comes out of what all batches of a call share.
USUAL_GROWTH: Final = 16
SHARED_BYTES: Final = 128 * 1024 * 1024
# Rows that are kept as Python objects before they go into Arrow arrays.
_ROWS_AT_ONCE: Final = 4096
# Rows and bytes that are read together: what is worked on stays in the processor's caches.
_ROWS_TOGETHER: Final = 16_384
_BYTES_TOGETHER: Final = 16 * 1024 * 1024
# aiokafka reads a few bytes beyond a torn end before it notices. These can't be taken for a number.
_GUARD: Final = b"\xff" * 32
# The least bytes of a record: its length, attributes, two deltas, two lengths and the number of headers.
_LEAST_RECORD = 7
# What a record takes at least in memory, however small it is.
_ROW_BYTES = 32
# Kafka reads a number from 5 bytes at most and a time from 10. What is longer, or has more bits, has four such bytes.
_INT_BYTES: Final = 5
_TIME_BYTES: Final = 10
_LONG_NUMBER: Final = re.compile(rb"[\x80-\xff]{4}")
# Fewer records are quicker one by one.
MANY_ROWS: Final = 200


class AiokafkaRecords:
    """The port `RecordCodec` by aiokafka.

    `shared_bytes`: what batches of one call may unpack to beyond `USUAL_GROWTH`. At least `many_rows` records are
    read and encoded together, with the same result.
    """

    def __init__(self, shared_bytes: int = SHARED_BYTES, many_rows: int = MANY_ROWS) -> None:
        self._shared_bytes = shared_bytes
        self._many_rows = many_rows

    def columns(self, batches: Sequence[bytes | memoryview], rules: RecordRules | None = None) -> Columns:
        """See `RecordCodec.columns`."""
        decoding = Decoding(len(batches), self._shared_bytes, self._many_rows)
        for index, batch in enumerate(batches):
            decoding.add(index, memoryview(batch))
        columns = decoding.done()
        return columns if rules is None else ruled(columns, rules)

    def noted(self, batches: Sequence[bytes | memoryview], rules: RecordRules, most_bytes: int) -> None:
        """See `RecordCodec.noted`."""

    def batches(
        self, records: pa.RecordBatch, leader_epoch: int, codec: int, most_bytes: int
    ) -> Sequence[EncodedBatch]:
        """See `RecordCodec.batches`."""
        if not records.num_rows:
            return []
        parts = runs(records)
        if records.num_rows < self._many_rows * len(parts):
            return _one_by_one(records, leader_epoch, codec, most_bytes)
        return [
            batch
            for start, end in parts
            for batch in arrow_batches(records.slice(start, end - start), leader_epoch, codec, most_bytes)
        ]

    def rows(self) -> None:
        """See `RecordCodec.rows`."""


def _one_by_one(records: pa.RecordBatch, leader_epoch: int, codec: int, most_bytes: int) -> Sequence[EncodedBatch]:
    """Batches by aiokafka's builder."""
    encoded = []
    rows = _rows(records)
    row = next(rows, None)
    while row is not None:
        base, first_ms, kind = row[0], row[1], row[2]
        builder = DefaultRecordBatchBuilder(MAGIC, NONE, 0, -1, -1, -1, most_bytes)
        count, last, max_ms = 0, base, first_ms
        while row is not None:
            offset, ms, row_kind, key, value, headers = row
            together = row_kind == kind and offset - base <= MOST_DELTA
            if not together or (kind == schema.LOG_APPEND_TIME and ms != first_ms):
                break
            # By the batch's first time: a builder takes -1 for a time that it does not know yet.
            if builder.append(offset - base, ms - first_ms, key, value, headers) is None:
                break
            count, last, max_ms = count + 1, offset, max(max_ms, ms)
            row = next(rows, None)
        attributes = LOG_APPEND_TIME_BIT if kind == schema.LOG_APPEND_TIME else 0
        header = BatchHeader(
            base, 0, leader_epoch, MAGIC, 0, attributes, last - base, first_ms, max_ms, -1, -1, -1, count
        )
        encoded.append(EncodedBatch(sealed(header, memoryview(builder.build())[HEADER.size :], codec), base, last))
    return encoded


def _rows(records: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """Offset, timestamp in ms, its type, key, value and headers of each record."""
    headers: Any = repeat([])
    if "headers" in records.schema.names and records.column("headers").null_count < records.num_rows:
        headers = ([(h["key"], h["value"]) for h in row or ()] for row in records.column("headers").to_pylist())
    return zip(
        records.column("offset").to_pylist(),
        timestamps_ms(records).tolist(),
        records.column("timestampType").to_pylist(),
        records.column("key").to_pylist(),
        records.column("value").to_pylist(),
        headers,
        strict=False,
    )


class Decoding:
    """Batches on their way into columns. Plain ones wait to be read together, the others are read one by one."""

    def __init__(self, batches: int, shared_bytes: int, many_rows: int = MANY_ROWS) -> None:
        self._shared_bytes = shared_bytes
        self._many_rows = many_rows
        self._counts = [0] * batches
        self._refused: dict[int, TidelogError] = {}
        # (index, header, what it was unpacked to)
        self._plain: list[tuple[int, BatchHeader, bytes | memoryview]] = []
        self._plain_rows = self._plain_bytes = 0
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._timestamps: list[int] = []
        # Of the rows that have headers; few have.
        self._headers: dict[int, list[tuple[str, bytes | None]]] = {}
        self._parts: list[pa.RecordBatch] = []

    def add(self, index: int, batch: memoryview) -> None:
        """Read the records of a batch, now or with others, or keep why that can't be done."""
        header = header_of(batch)
        try:
            body = self._unpacked(header, batch[HEADER.size :])
        except (CorruptBatchError, InvalidRecordError) as e:
            self._refuse(index, e)
            return
        # The last byte is the number of the last record's headers, where it has none.
        if header.count <= _ROWS_TOGETHER and not body[-1]:
            self._plain.append((index, header, body))
            self._plain_rows += header.count
            self._plain_bytes += len(body)
            if self._plain_rows >= _ROWS_TOGETHER or self._plain_bytes >= _BYTES_TOGETHER:
                self._read_together()
        else:
            self._read_together()
            self._read_alone(index, header, body)

    def done(self) -> Columns:
        """All that was read."""
        self._read_together()
        self._flush()
        return Columns(pa.Table.from_batches(self._parts, COLUMNS), self._counts, self._refused)

    def _refuse(self, index: int, error: TidelogError) -> None:
        error.__cause__ = error.__context__ = None  # they hold all that was unpacked, through their tracebacks
        self._refused[index] = error.with_traceback(None)

    def _unpacked(self, header: BatchHeader, packed: memoryview) -> bytes | memoryview:
        usual = USUAL_GROWTH * len(packed)
        body = unpacked(header.codec, packed, usual + self._shared_bytes)
        if not 0 < header.count * _LEAST_RECORD <= len(body):
            raise InvalidRecordError(
                f"A record batch claims {header.count} records, which its {len(body)} bytes can't hold."
            )
        beyond = len(body) + _ROW_BYTES * header.count - usual
        if beyond > 0:
            if beyond > self._shared_bytes:
                raise CorruptBatchError(
                    f"A record batch of {len(packed)} bytes unpacks to {header.count} records of {len(body)} bytes: it"
                    " is refused as what was made to fill the memory. Make the producer's batches smaller."
                )
            self._shared_bytes -= beyond
        return body

    def _read_together(self) -> None:
        """Read the batches that wait."""
        plain, rows = self._plain, self._plain_rows
        if not plain:
            return
        self._plain, self._plain_rows, self._plain_bytes = [], 0, 0
        part = None
        if rows >= self._many_rows:
            part = arrow_columns([header for _, header, _ in plain], [body for _, _, body in plain])
        if part is None:
            for one in plain:
                self._read_alone(*one)
            return
        self._flush()
        self._parts.append(part)
        for index, header, _ in plain:
            self._counts[index] = header.count

    def _read_alone(self, index: int, header: BatchHeader, body: bytes | memoryview) -> None:
        """Read a batch by aiokafka, or keep what it finds wrong."""
        if len(self._keys) + header.count > _ROWS_AT_ONCE:
            self._flush()
        parts, rows = len(self._parts), len(self._keys)
        unpacked_header = HEADER.pack(*header._replace(base_offset=0, attributes=header.attributes & ~CODEC_BITS))
        try:
            if _LONG_NUMBER.search(body):  # before compiled code sees them: it makes room for what a number claims
                _require_numbers(memoryview(body))
            self._read(header, memoryview(b"".join((unpacked_header, body, _GUARD)))[: -len(_GUARD)])
            self._counts[index] = header.count
        except InvalidRecordError as e:
            self._refuse(index, e)
            del self._parts[parts:]
            for column in (self._keys, self._values, self._timestamps):
                del column[rows:]
            self._headers = {row: headers for row, headers in self._headers.items() if row < rows}

    def _read(self, header: BatchHeader, plain: memoryview) -> None:
        """Take one record after the other, and keep none: the garbage collector would look at each, again and again."""
        add_key, add_value, add_timestamp = self._keys.append, self._values.append, self._timestamps.append
        expected, row = 0, len(self._keys)
        try:
            for record in DefaultRecordBatch(plain):
                if record.offset != expected:
                    raise InvalidRecordError(
                        f"The offsets of a record batch should rise by 1: record {expected} has {record.offset}."
                    )
                expected += 1
                add_key(record.key)
                add_value(record.value)
                add_timestamp(record.timestamp)
                if headers := record.headers:
                    self._headers[row] = headers
                row += 1
                if row >= _ROWS_AT_ONCE:
                    self._flush()
                    add_key, add_value, add_timestamp = self._keys.append, self._values.append, self._timestamps.append
                    row = 0
        except (CorruptRecordException, ValueError, OverflowError) as e:
            raise InvalidRecordError(f"A record batch has no valid records: {e}.") from e
        if expected != header.count:
            raise InvalidRecordError(f"A record batch claims {header.count} records and has {expected}.")

    def _flush(self) -> None:
        """Rows become Arrow arrays."""
        rows = len(self._timestamps)
        if not rows:
            return
        timestamps = np.array(self._timestamps, np.int64)
        arrays = [
            pa.array(self._keys, pa.binary()),
            pa.array(self._values, pa.binary()),
            timestamp_column(timestamps),
            pa.array(map(self._headers.get, range(rows)), schema.HEADERS, size=rows)
            if self._headers
            else schema.alike("headers", None, rows),
        ]
        self._parts.append(pa.RecordBatch.from_arrays(arrays, schema=COLUMNS))
        self._keys, self._values, self._timestamps, self._headers = [], [], [], {}


def _require_numbers(body: memoryview) -> None:
    """Refuse records with a number that takes more bytes than any client of Kafka reads, or claims more than are there.

    Consumers get a batch as it came, so that what one of them can't read must not get in.
    """
    at, end = 0, len(body)

    def number(most_bytes: int = _INT_BYTES) -> int:
        nonlocal at
        code = 0
        for place in range(most_bytes):
            byte = body[at + place]
            code |= (byte & 127) << 7 * place
            if byte < 128 and (most_bytes > _INT_BYTES or code < 2**32):
                at += place + 1
                return (code >> 1) ^ -(code & 1)
        raise InvalidRecordError(
            f"A number in a record batch takes more than {most_bytes} bytes, or does not fit them."
        )

    def text() -> None:
        nonlocal at
        length = number()
        if length > end - at:
            raise InvalidRecordError(f"A record claims {length} bytes of a record batch that has {end - at} left.")
        at += max(length, 0)

    try:
        while at < end:
            number()
            at += 1  # attributes
            number(_TIME_BYTES)
            number()
            text()
            text()
            for _ in range(number()):
                text()
                text()
    except IndexError:
        raise InvalidRecordError("A record batch has numbers that say different things to different readers.") from None


def ruled(columns: Columns, rules: RecordRules) -> Columns:
    """Columns without the batches whose records break the rules."""
    columns = _of_size(columns, rules)
    table = columns.table
    times = table.column("timestamp")
    timestamps = (times.fill_null(NO_TIMESTAMP) if times.null_count else times).to_numpy()
    key = table.column("key")
    if not (rules.compacted and key.null_count) and not rules.outside(timestamps).any():
        return columns
    keys_null = key.is_null().to_numpy()
    return _without(columns, lambda rows: rules.refusal(keys_null[rows], timestamps[rows]))


def _of_size(columns: Columns, rules: RecordRules) -> Columns:
    """Columns without the batches that have a record which is too large unpacked."""
    if columns.table.nbytes <= rules.most_bytes:
        return columns
    sizes = record_sizes(columns.table)
    return _without(columns, lambda rows: rules.too_large(int(sizes[rows].max(initial=0))))


def _without(columns: Columns, refusal: Callable[[slice], TidelogError | None]) -> Columns:
    """Columns without the batches that are refused; `refusal` takes the rows of one."""
    refused, taken = dict(columns.refused), np.ones(columns.table.num_rows, np.bool_)
    begin, left = 0, []
    for index, count in enumerate(columns.counts):
        rows = slice(begin, begin + count)
        error = refusal(rows) if count else None
        if error is not None:
            refused[index] = error
            taken[rows] = False
        left.append(0 if error is not None else count)
        begin += count
    return Columns(columns.table.filter(pa.array(taken)), left, refused)
