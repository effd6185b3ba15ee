"""The port between record batches and Arrow columns, and what goes through it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidelog.broker.records.errors import RejectedKeysError, RejectedTimestampsError
from tidelog.log.base.errors import RecordTooLargeError, TidelogError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta import schema
from tidelog.log.segments.noted import Notes

# A page of a column: its bytes, unpacked, how many values it has, their encoding by Parquet's numbers, and whether they
# are a dictionary's.
Page = tuple[memoryview, int, int, bool]
# No record has a later timestamp: it is kept as microseconds in a LONG.
LAST_MS = (2**63 - 1) // 1000
# Kafka's timestamp of a record that has none.
NO_TIMESTAMP = -1

COLUMNS = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("timestamp", pa.int64()),
        pa.field("headers", schema.HEADERS),
    ]
)


def timestamp_column(timestamps: npt.NDArray[np.int64]) -> pa.Array:
    """Timestamps of a batch as a column: null where there is none."""
    none = timestamps == NO_TIMESTAMP
    return pa.array(timestamps, mask=none) if none.any() else pa.array(timestamps)


def record_sizes(records: pa.Table) -> npt.NDArray[np.int64]:
    """The bytes of each record's key, value and headers together."""
    sizes = np.zeros(records.num_rows, np.int64)
    for name in ("key", "value"):
        sizes += pc.fill_null(pc.binary_length(records.column(name)), 0).to_numpy()
    headers = records.column("headers").combine_chunks()
    if headers.null_count < len(headers):
        keys, values = headers.flatten().flatten()
        own = pc.add(pc.binary_length(keys), pc.fill_null(pc.binary_length(values), 0))
        np.add.at(sizes, pc.list_parent_indices(headers).to_numpy(), own.to_numpy())
    return sizes


@dataclass(frozen=True, slots=True)
class RecordRules:
    """What a topic asks of single records. Timestamps are checked where they lie within [earliest_ms, latest_ms].

    Timestamps mean nothing under LogAppendTime, and are not looked at.
    """

    topic: str
    compacted: bool
    create_time: bool
    earliest_ms: int
    latest_ms: int
    # Of a record's key, value and headers together, unpacked.
    most_bytes: int = 2**31 - 1

    @classmethod
    def of(cls, topic: str, config: TopicConfig, now_ms: int) -> Self:
        """The rules of a topic at this time, ms since the epoch."""
        return cls(
            topic,
            "compact" in config.cleanup_policy,
            config.timestamp_type == schema.CREATE_TIME,
            max(now_ms - config.message_timestamp_before_max_ms, 0),
            min(now_ms + config.message_timestamp_after_max_ms, LAST_MS),
            config.max_record_bytes,
        )

    def too_large(self, size: int) -> TidelogError | None:
        """Why a batch is refused whose largest record has this many bytes; None where it is taken."""
        if size <= self.most_bytes:
            return None
        return RecordTooLargeError(
            f"A record for topic '{self.topic}' has {size} bytes unpacked, more than the topic's"
            f" max.record.bytes={self.most_bytes}. Make it smaller, or raise that."
        )

    def refusal(self, keys_null: npt.NDArray[np.bool_], timestamps: npt.NDArray[np.int64]) -> TidelogError | None:
        """Why a batch with such records is refused, one of them at least being to blame; None where it is taken.

        The key counts first for each record, and a wrong timestamp anywhere makes it INVALID_TIMESTAMP (KIP-467).
        """
        no_key = keys_null if self.compacted else np.zeros(len(keys_null), np.bool_)
        out = ~no_key & self.outside(timestamps)
        if not (no_key.any() or out.any()):
            return None
        why = f"Compacted topic '{self.topic}' cannot accept a record without a key."
        errors = [(int(row), why) for row in np.flatnonzero(no_key)]
        for row in np.flatnonzero(out):
            text = f"Timestamp {timestamps[row]} of record {row} for topic '{self.topic}' is out of range: it should be"
            errors.append((int(row), f"{text} within [{self.earliest_ms}, {self.latest_ms}] (ms since the epoch)."))
        errors.sort()
        if out.any():
            return RejectedTimestampsError(
                f"{len(errors)} records for topic '{self.topic}' are rejected, some of them for their timestamps."
                f" The first: {errors[0][1]}",
                errors,
            )
        return RejectedKeysError(f"{len(errors)} records are rejected. The first, {errors[0][0]}: {why}", errors)

    def outside(self, timestamps: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which timestamps the topic can't take."""
        if not self.create_time:
            return np.zeros(len(timestamps), np.bool_)
        out: npt.NDArray[np.bool_] = (timestamps < self.earliest_ms) | (timestamps > self.latest_ms)
        out &= timestamps != NO_TIMESTAMP
        return out


@dataclass(frozen=True, slots=True)
class Columns:
    """Records of many batches. `table`: as `COLUMNS`, timestamps in ms since the epoch, null where there is none.

    `counts`: rows of each batch, in the order of the batches, which is that of the rows; 0 for a batch that is refused.
    `refused`: {index of the batch: why}; the errors have Kafka's codes, and `record_errors` where records are to blame.
    """

    table: pa.Table
    counts: Sequence[int]
    refused: Mapping[int, TidelogError]


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """A batch as clients get it, and the offsets of its first and last record, both inclusive."""

    data: bytes
    first: int
    last: int


class StoredRows(Protocol):
    """Records of segments' pages, in the order of their offsets, to be written as batches. For one thread at a time."""

    @property
    def size(self) -> int:
        """About how many bytes those take that are not written yet."""

    @property
    def next_offset(self) -> int:
        """The offset of the first record that is not written yet, -1 where there is none."""

    def thrift(self, data: memoryview, at: int, end: int) -> tuple[dict[int, Any], int]:
        """(the fields of the struct that begins there, where it ends), of Thrift's compact protocol.

        Structs are dicts, numbers int, lists list, and all else bytes. Raises `ValueError`.
        """

    def add(self, count: int, columns: list[list[Page]], base: int, first: int, low: int, end: int) -> bool:
        """Take the `count` records of a row group; whether all of it is plain, else none are taken.

        `columns`: the pages of each leaf of a plain topic's segment. A record's offset is its position and `base`, and
        has to be below `end`; positions are counted from `first` on, or read where that is -1. What is below the offset
        `low` is left out.
        """

    def batches(
        self, leader_epoch: int, codec: int, most_bytes: int, most_in_all: int, stop: int
    ) -> "Sequence[EncodedBatch] | None":
        """The next records as `RecordCodec.batches` has them, of offsets below `stop`; None for what is not plain.

        One batch at least, if there are records, and more while all are at most `most_in_all` bytes unpacked.
        """


class BatchNotes(Notes, Protocol):
    """Notes of batches. `counts`: how many records each has."""

    counts: Sequence[int]


class RecordCodec(Protocol):
    """Turns record batches into Arrow columns and back. All methods may be called from many threads."""

    def columns(self, batches: Sequence[bytes | memoryview], rules: RecordRules | None = None) -> Columns:
        """The records of batches that were checked by `tidelog.broker.records.batches.check`, all in one go.

        A batch that can't be unpacked or read, or whose records break `rules`, is left out, and the others are not.
        """

    def noted(self, batches: Sequence[bytes | memoryview], rules: RecordRules, most_bytes: int) -> BatchNotes | None:
        """The records of batches, checked and noted where they are.

        None where a batch is not plainly right, or larger than `most_bytes`, or breaks rules, or none can be noted:
        `tidelog.broker.records.batches.check` and `columns` say what there is.
        """

    def batches(
        self, records: pa.RecordBatch, leader_epoch: int, codec: int, most_bytes: int
    ) -> Sequence[EncodedBatch]:
        """Records of a partition as batches of at most `most_bytes` each unpacked, or of one record that is larger.

        `records`: columns offset (rising, with gaps where compaction left some), key, value, timestamp, timestampType,
        and headers where there are any. `codec`: what they are packed by, an index of
        `tidelog.broker.records.batches.CODECS`.
        """

    def rows(self) -> StoredRows | None:
        """Room for records of segments' pages; None where only Arrow reads them."""
