"""From a caller's table to a topic's records: columns, types, sizes, timestamps, each rule checked by column."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.log.base.errors import InvalidRecordError, InvalidTimestampError, RecordTooLargeError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta import schema
from tidelog.log.typed.value_typing import Typing

# What a producer may hand in, and what a reader's output adds, so that records read can be appended elsewhere.
TAKEN = ("key", "value", "headers", "partition", "timestamp")
PASSED_OVER = frozenset({"topic", "offset", "timestampType", "timestamp_type", schema.COLUMNS})

# What a segment holds of a record, but for its position.
_RECORDS = schema.SEGMENT.remove(0)
# The last ms since the epoch whose microseconds are a LONG.
_LAST_MS = (2**63 - 1) // 1000
_MICROS_OF = {"s": 1_000_000, "ms": 1_000, "us": 1}


def to_records(
    table: pa.Table,
    topic: str,
    config: TopicConfig,
    now_ms: int,
    *,
    sizes_judged: bool = False,
    typing: Typing | None = None,
) -> pa.Table:
    """The table as records to append: columns key, value, headers, timestamp, timestamp_type.

    `now_ms` is the timestamp (ms since the epoch) of records that have none, and of all under LogAppendTime.
    `sizes_judged`: whether `max.message.bytes` was judged before, as by brokers, by what their clients packed.
    `typing`: of a typed topic, whose records have the columns of their values, too, as `Typing.apply` says; `columns`
    may come instead of `value` then.
    Raises `InvalidRecordError`, `RecordTooLargeError` or `InvalidTimestampError` naming column and row.
    """
    table = with_values(table, topic, typing)
    check_columns(table.schema, topic)
    count = table.num_rows
    given = dict(zip(table.schema.names, table.columns, strict=True))
    if "topic" in given:
        _check_topic(given["topic"], topic)
    key = _binary(given.get("key"), "key", topic, count)
    value = _binary(given["value"], "value", topic, count)
    if "compact" in config.cleanup_policy and key.null_count:
        row = pc.index(key.is_null(), True).as_py()
        raise InvalidRecordError(
            f"Topic '{topic}' is compacted and cannot accept a record without a key (row {row} has none):"
            " compaction keeps the newest record of each key. Give every record a key, or set"
            " cleanup.policy=delete."
        )
    headers = _headers(given.get("headers"), topic, count)
    if not sizes_judged:
        _check_sizes(key, value, headers, topic, config.max_message_bytes)
    by_producer = config.timestamp_type == schema.CREATE_TIME
    timestamps = _timestamps(given.get("timestamp") if by_producer else None, topic, config, now_ms, count)
    kinds = schema.alike("timestamp_type", config.timestamp_type, count)
    records = pa.Table.from_arrays([key, value, headers, timestamps, kinds], schema=_RECORDS)
    return records if typing is None else typing.apply(records, topic)


def with_values(table: pa.Table, topic: str, typing: Typing | None) -> pa.Table:
    """The table, with a column `value` made of `columns` where a typed topic is given those instead.

    Raises `InvalidRecordError` for columns that are not of the topic's schema.
    """
    names = table.schema.names
    if typing is None or schema.COLUMNS not in names or "value" in names:
        return table
    values = typing.bytes_for(table.column(schema.COLUMNS).combine_chunks(), topic)
    return table.set_column(names.index(schema.COLUMNS), "value", values)


def check_columns(columns: pa.Schema, topic: str, *, or_typed: bool = False) -> None:
    """Refuse a table without `value`, or with a column that would be lost.

    `or_typed`: `columns` does instead of `value`, as long as it is open whether the topic takes that.
    """
    names = columns.names
    if "value" not in names and not (or_typed and schema.COLUMNS in names):
        raise InvalidRecordError(
            f"The table for topic '{topic}' has no column 'value', which every record needs (null for a"
            f" tombstone). Its columns are: {', '.join(names) or 'none'}."
        )
    unknown = [n for n in names if n not in TAKEN and n not in PASSED_OVER]
    if unknown:
        raise InvalidRecordError(
            f"The table for topic '{topic}' has columns that a record does not: {', '.join(unknown)}. A record"
            f" has {', '.join(TAKEN)}; put other fields into the value, as JSON for example."
        )
    repeated = sorted({n for n in names if names.count(n) > 1})
    if repeated:
        raise InvalidRecordError(f"The table for topic '{topic}' has column '{repeated[0]}' more than once.")


def _check_topic(column: pa.ChunkedArray, topic: str) -> None:
    """Refuse records that name another topic: no consumer would expect them in this one."""
    others = pc.unique(column.drop_null())
    names = [n for n in others.to_pylist() if n != topic]
    if names:
        raise InvalidRecordError(
            f"A record for topic {names[0]!r} can't be appended to topic '{topic}': its column 'topic' says where it"
            f" belongs. Append it to that topic, or drop the column to copy the record to '{topic}'."
        )


def _binary(column: pa.ChunkedArray | None, name: str, topic: str, count: int) -> pa.ChunkedArray:
    if column is None:
        return pa.chunked_array([schema.alike(name, None, count)])
    kind = column.type
    if kind == pa.binary():
        return column
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_null(kind) or _is_bytes_like(kind):
        try:
            return column.cast(pa.binary())
        except pa.ArrowInvalid as e:
            raise InvalidRecordError(
                f"Column '{name}' for topic '{topic}' can't be taken as binary: {e}. One Arrow array of binary holds"
                " 2 GiB at most: append the table in several parts."
            ) from e
    raise InvalidRecordError(
        f"Column '{name}' for topic '{topic}' is {kind}, but a record's {name} is binary or string."
        f" Cast it, or encode it (JSON, Avro)."
    )


def _is_bytes_like(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or kind in (pa.binary_view(), pa.string_view())
    )


def _headers(column: pa.ChunkedArray | None, topic: str, count: int) -> pa.ChunkedArray:
    if column is None:
        return pa.chunked_array([schema.alike("headers", None, count)])
    kind = column.type
    element = getattr(kind, "value_type", None)
    if element is not None and pa.types.is_struct(element):
        others = [f.name for f in element if f.name not in ("key", "value")]
        if others:
            raise InvalidRecordError(
                f"Headers for topic '{topic}' have fields that a header does not: {', '.join(others)}. A header has key"
                " and value; put other fields into the value."
            )
    try:
        if pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
            cast = pa.chunked_array([pa.array(column.to_pylist(), schema.HEADERS)])  # Arrow's own cast breaks offsets
        else:
            cast = column if kind == schema.HEADERS else column.cast(schema.HEADERS)
    except (pa.ArrowException, TypeError) as e:
        raise InvalidRecordError(
            f"Column 'headers' for topic '{topic}' is {kind}, but headers are a list of structs (key: string, value:"
            f" binary): {e}. Build such a list, or leave the column out."
        ) from e
    keys = pc.struct_field(pc.list_flatten(cast), "key") if cast.null_count < count else None
    if keys is not None and keys.null_count:
        raise InvalidRecordError(
            f"A header for topic '{topic}' has no key: a header may lack a value, not a key. Name it, or leave it out."
        )
    return cast


def _check_sizes(
    key: pa.ChunkedArray, value: pa.ChunkedArray, headers: pa.ChunkedArray, topic: str, limit: int
) -> None:
    """Kafka's `max.message.bytes` for each record: the bytes of key, value and headers."""
    columns = key, value, headers
    # Whole buffers are counted in no time; they may hold more than these rows.
    if sum(c.get_total_buffer_size() for c in columns) <= limit or sum(c.nbytes for c in columns) <= limit:
        return
    lengths = [pc.fill_null(pc.binary_length(column), 0).cast(pa.int64()) for column in (key, value)]
    sizes = pc.add(*lengths)
    if headers.null_count < len(headers):
        sizes = pc.add(sizes, _header_sizes(headers))
    largest = pc.max(sizes).as_py() or 0
    if largest > limit:
        row = pc.index(pc.greater(sizes, limit), True).as_py()
        raise RecordTooLargeError(
            f"Record {row} for topic '{topic}' has {sizes[row].as_py()} bytes of key, value and headers, more"
            f" than the topic's max.message.bytes={limit}. Raise it, or store the payload elsewhere and send its"
            " address."
        )


def _header_sizes(headers: pa.ChunkedArray) -> pa.Array:
    combined = headers.combine_chunks()
    array = combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
    flat, parents = pc.list_flatten(array), pc.list_parent_indices(array)
    lengths = pc.add(
        pc.binary_length(pc.struct_field(flat, "key")),
        pc.fill_null(pc.binary_length(pc.struct_field(flat, "value")), 0),
    )
    return pa.array(np.bincount(parents, lengths, len(array)).astype(np.int64))


def _timestamps(
    column: pa.ChunkedArray | None, topic: str, config: TopicConfig, now_ms: int, count: int
) -> pa.ChunkedArray:
    if column is None:
        return pa.chunked_array([pa.repeat(pa.scalar(now_ms * 1000, schema.TIMESTAMP), count)])
    try:
        micros = _micros(column, topic, now_ms)
    except pa.ArrowInvalid as e:
        raise InvalidTimestampError(
            f"A timestamp of a record for topic '{topic}' is out of range: microseconds since the epoch must fit a LONG"
            f" ({e}). Correct the producer's timestamps, or their unit."
        ) from e
    _check_times(_numbers(micros), topic, config, now_ms)
    return micros


def _numbers(column: pa.ChunkedArray) -> list[npt.NDArray[np.int64]]:
    """The 64-bit numbers of a column without nulls. Arrow's kernels take longer than numpy for few records."""
    return [np.frombuffer(a.buffers()[1], np.int64, len(a), a.offset * 8) for a in column.chunks if len(a)]


def _micros(column: pa.ChunkedArray, topic: str, now_ms: int) -> pa.ChunkedArray:
    """Timestamps as a segment has them, `now_ms` for null: from those of any unit, or from Kafka's int64 of ms."""
    if column.type == pa.int64() and not column.null_count:
        numbers = _numbers(column)
        if all(part.min() >= -_LAST_MS and part.max() <= _LAST_MS for part in numbers):
            return pa.chunked_array([_times(part * 1000) for part in numbers], schema.TIMESTAMP)
    if column.type != schema.TIMESTAMP:
        column = _micros_of_any(column, topic).cast(schema.TIMESTAMP)
    return column.fill_null(pa.scalar(now_ms * 1000, schema.TIMESTAMP)) if column.null_count else column


def _times(micros: npt.NDArray[np.int64]) -> pa.Array:
    return pa.Array.from_buffers(schema.TIMESTAMP, len(micros), [None, pa.py_buffer(micros)])


def _micros_of_any(column: pa.ChunkedArray, topic: str) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_timestamp(kind):
        if kind.unit == "ns":
            return column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        micros = column.cast(pa.int64())
        factor = _MICROS_OF[kind.unit]
        return micros if factor == 1 else pc.multiply_checked(micros, factor)
    if pa.types.is_integer(kind):
        return pc.multiply_checked(column if kind == pa.int64() else column.cast(pa.int64()), 1000)
    if pa.types.is_null(kind):
        return column.cast(pa.int64())
    raise InvalidRecordError(
        f"Column 'timestamp' for topic '{topic}' is {kind}, but it is a timestamp, or an integer of ms since the epoch."
    )


def times_within(config: TopicConfig, now_ms: int) -> tuple[int, int]:
    """The earliest and the latest timestamp that a topic with CreateTime takes at a time, ms since the epoch."""
    earliest = now_ms - config.message_timestamp_before_max_ms
    return max(earliest, 0), min(now_ms + config.message_timestamp_after_max_ms, _LAST_MS)


def _check_times(micros: Sequence[npt.NDArray[np.int64]], topic: str, config: TopicConfig, now_ms: int) -> None:
    """Kafka's `message.timestamp.before.max.ms` and `message.timestamp.after.max.ms` (CreateTime only)."""
    if not micros:
        return
    low_ms, high_ms = int(min(part.min() for part in micros)) // 1000, int(max(part.max() for part in micros)) // 1000
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    if low_ms < earliest or high_ms > latest or low_ms < 0:
        worst = low_ms if low_ms < max(earliest, 0) else high_ms
        raise InvalidTimestampError(
            f"Timestamp {worst} of a record for topic '{topic}' is out of range: it should be within"
            f" [{max(earliest, 0)}, {latest}] (ms since the epoch; message.timestamp.before.max.ms and"
            " message.timestamp.after.max.ms). Correct the producer's timestamps or widen the range."
        )
