"""Records between `produce` and their log entry: rows as Python hands them in, and their Arrow columns."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.clients.values.errors import KafkaError, KafkaException, invalid_argument, kafka_exception
from tidelog.clients.values.message import Headers
from tidelog.log.delta import schema
from tidelog.log.group_commit.requests import F64, I32, I64, NO_PARTITION
from tidelog.log.rules.appends import Ranges

_BATCH_FIELDS: Final = ("value", "key", "partition", "timestamp", "headers", "callback")
# Times from here on, either way, don't fit as microseconds.
_BEYOND_MS: Final = 2**63 // 1000
DeliveryCallback = Callable[[Any, Any], Any]


class Extra(NamedTuple):
    """What few rows have: an explicit partition, a timestamp (ms; 0: none), headers, a callback of their own."""

    partition: int
    timestamp: int
    headers: Headers | None
    callback: DeliveryCallback | None


# Value, key, when it was handed in (seconds on the elapsed clock), what few rows have, and its bytes.
Row = tuple[bytes | None, bytes | None, float, Extra | None, int]


@dataclass(slots=True)
class Rows:
    """Rows of `produce`, column by column. `extras`: by row; `stamps`: when each was handed in; `size`: bytes."""

    values: list[bytes | None]
    keys: list[bytes | None]
    stamps: F64
    extras: dict[int, Extra]
    size: int

    @classmethod
    def of(cls, rows: Sequence[Row], size: int) -> "Rows":
        """The rows by column."""
        extras = [row[3] for row in rows]
        found = {} if extras.count(None) == len(rows) else {i: e for i, e in enumerate(extras) if e is not None}
        stamps = np.array([row[2] for row in rows])
        return cls([row[0] for row in rows], [row[1] for row in rows], stamps, found, size)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self.values)

    @property
    def units(self) -> int:
        """How many parts of it are taken or refused as a whole: each row."""
        return len(self.values)

    def columns(self, now_ms: int, now_s: float) -> pa.Table:
        """The rows as a table, without columns of which it has no value."""
        columns = {"value": pa.array(self.values, pa.binary())}
        times = self.timestamps(now_ms, now_s)
        if not self.extras or (times.min() > -_BEYOND_MS and times.max() < _BEYOND_MS):
            buffers = [None, pa.py_buffer(times * 1000)]
            columns["timestamp"] = pa.Array.from_buffers(schema.TIMESTAMP, self.count, buffers)
        else:  # what checks the records refuses them, each by itself
            columns["timestamp"] = pa.array(times)
        if any(key is not None for key in self.keys):
            columns["key"] = pa.array(self.keys, pa.binary())
        headers = {row: extra.headers for row, extra in self.extras.items() if extra.headers}
        if headers:
            columns["headers"] = pa.array([headers.get(row) for row in range(self.count)], schema.HEADERS)
        return pa.Table.from_arrays(list(columns.values()), list(columns))

    def timestamps(self, now_ms: int, now_s: float) -> I64:
        """Each row's timestamp in ms: its own, or the time when it was handed in."""
        stamps = now_ms - np.ceil((now_s - self.stamps) * 1000).astype(np.int64)
        for row, extra in self.extras.items():
            if extra.timestamp:
                stamps[row] = extra.timestamp
        return stamps

    def explicit(self) -> I32 | None:
        """The rows' own partitions."""
        given = {row: extra.partition for row, extra in self.extras.items() if extra.partition != NO_PARTITION}
        if not given:
            return None
        partitions = np.full(self.count, NO_PARTITION, np.int32)
        partitions[list(given)] = list(given.values())
        return partitions


@dataclass(slots=True)
class Sending:
    """A whole call of `produce_table`: how many `parts` of it are not completed, and the offsets of the others."""

    future: Future[Ranges]
    parts: int
    ranges: Ranges = field(default_factory=dict)
    failed: bool = False

    def settle(self, ranges: Ranges, error: Exception | None) -> None:
        """A part is in the log, or failed."""
        for partition, (first, end) in ranges.items():
            self.ranges[partition] = (self.ranges.get(partition, (first, end))[0], end)
        self.parts -= 1
        if error is not None and not self.failed:
            self.failed = True
            self.future.set_exception(error)
        if not self.parts and not self.failed:
            self.future.set_result(self.ranges)


@dataclass(slots=True)
class Part:
    """A part of a table of `produce_table`, committed as one entry."""

    table: pa.Table
    sending: Sending
    stamp_s: float
    size: int

    @property
    def count(self) -> int:
        """How many rows there are."""
        rows: int = self.table.num_rows
        return rows

    @property
    def units(self) -> int:
        """How many parts of it are taken or refused as a whole: it is one."""
        return 1

    @property
    def stamps(self) -> F64:
        """When each unit was handed in."""
        return np.array([self.stamp_s])

    def columns(self, _now_ms: int, _now_s: float) -> pa.Table:
        """The table as it came, without the partitions; rows without a timestamp get it when they are checked."""
        names = self.table.schema.names
        kept: pa.Table = self.table.drop_columns(["partition"]) if "partition" in names else self.table
        return kept

    def explicit(self) -> I32 | None:
        """The column `partition`, null as none."""
        if "partition" not in self.table.schema.names:
            return None
        column = self.table.column("partition").cast(pa.int32()).fill_null(NO_PARTITION)
        return np.asarray(column, dtype=np.int32)


# What is committed together: records of one topic.
Chunk = Rows | Part


def headers_size(headers: Headers) -> int:
    """The bytes of a record's headers."""
    return sum(len(key) + len(value or b"") for key, value in headers)


def sizes_by_partition(table: pa.Table, chosen: I32) -> dict[int, int]:
    """The bytes of the rows' keys and values by the partitions that they go to."""
    sizes = np.zeros(table.num_rows, np.int64)
    for name in {"key", "value"} & set(table.schema.names):
        sizes += np.asarray(pc.fill_null(pc.binary_length(table.column(name)), 0), np.int64)
    by_partition = np.bincount(chosen, sizes)
    return {int(p): int(by_partition[p]) for p in np.unique(chosen)}


def as_bytes(given: Any, what: str) -> bytes:
    """A key or a value as bytes; text is UTF-8. Raises TypeError."""
    if isinstance(given, bytes):
        return given
    if isinstance(given, str):
        return given.encode()
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    raise TypeError(f"{what} must be str, bytes or None, not {type(given).__name__}: serialize it")


def as_headers(given: Any) -> Headers | None:
    """Headers as a list of pairs; a dict's items in its order. Raises TypeError."""
    if isinstance(given, Mapping):
        pairs: Sequence[Any] = list(given.items())
    elif isinstance(given, list | tuple):
        pairs = given
    else:
        raise TypeError(f"headers must be a list of (key, value) or a dict, not {type(given).__name__}")
    headers: Headers = []
    for pair in pairs:
        if not (isinstance(pair, tuple | list) and len(pair) == 2 and isinstance(pair[0], str)):
            raise TypeError(f"a header is a tuple of a key (str) and a value (bytes, str or None), not {pair!r}")
        headers.append((pair[0], None if pair[1] is None else as_bytes(pair[1], "a header's value")))
    return headers or None


def extra_of(partition: Any, timestamp: Any, headers: Any, callback: Any) -> Extra:
    """What few records have, checked. Raises TypeError, KafkaException for a partition that is no int32."""
    for name, number in (("partition", partition), ("timestamp", timestamp)):
        if isinstance(number, bool) or not isinstance(number, int):
            raise TypeError(f"{name} must be int, not {type(number).__name__}")
    if callback is not None and not callable(callback):
        raise TypeError(f"a delivery callback is a callable, not {type(callback).__name__}")
    if not -(2**31) <= partition < 2**31:
        raise invalid_argument(f"Partition {partition} is no INT.")
    return Extra(partition, timestamp, as_headers(headers) if headers else None, callback)


def too_large(size: int, most: int) -> KafkaException:
    """What `produce` raises for a record of `size` bytes where `message.max.bytes` allows `most`."""
    return kafka_exception(
        KafkaError.MSG_SIZE_TOO_LARGE,
        f"Unable to produce message: a record of {size} bytes (key, value and headers) is larger than"
        f" message.max.bytes={most}. Raise it, and the topic's max.message.bytes where that is smaller, or store"
        " the payload elsewhere and send its address.",
    )


def batch_records(messages: Any, partition: int, callback: DeliveryCallback | None) -> list[dict[str, Any]]:
    """The arguments of `produce` for each dict of `produce_batch`; `partition` and `callback` where it has none.

    Raises TypeError, naming the record, for what `produce` would refuse by its type.
    """
    if not isinstance(messages, list):
        raise TypeError(f"messages must be a list of dicts, not {type(messages).__name__}")
    records = []
    for at, message in enumerate(messages):
        if not isinstance(message, dict):
            raise TypeError(f"messages[{at}] must be a dict, not {type(message).__name__}")
        given = {name: message[name] for name in _BATCH_FIELDS if message.get(name) is not None}
        record = {"partition": partition, "callback": callback, **given}
        try:
            for name in ("value", "key"):
                if name in record:
                    record[name] = as_bytes(record[name], name)
            extra_of(record["partition"], record.get("timestamp", 0), record.get("headers"), record["callback"])
        except TypeError as e:
            raise TypeError(f"messages[{at}]: {e}") from e
        records.append(record)
    return records
