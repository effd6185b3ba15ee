"""A fetch: what its reader asks for, and the events that reading it gives."""

from dataclasses import dataclass

import pyarrow as pa

from tidelog.log.base.errors import TidelogError
from tidelog.log.follow.cursor import Cursor, Held
from tidelog.log.segments.fetch import as_batch


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Kafka's `fetch.min.bytes`, `fetch.max.bytes`, `max.partition.fetch.bytes`, `fetch.wait.max.ms`, and
    librdkafka's `fetch.error.backoff.ms`; times in seconds.

    `min_bytes` counts bytes as stored, the others as handed out. At least one record is always handed out, however
    large.
    """

    min_bytes: int = 1
    max_bytes: int = 52_428_800
    partition_max_bytes: int = 1_048_576
    max_wait_s: float = 0.5
    retry_s: float = 0.5


@dataclass(frozen=True, slots=True)
class Fetched:
    """Records of a partition, of about `nbytes`; `next_offset` is where its next read begins.

    `held`: the records as they were read, as of a `version` of the topic. `log_start` and `log_end`: the partition's
    offsets as last seen.
    """

    cursor: Cursor
    held: Held
    nbytes: int
    next_offset: int
    log_start: int
    log_end: int
    version: int = -1

    @property
    def records(self) -> pa.RecordBatch:
        """The records as a batch, columns as `tidelog.log.delta.schema.RECORDS`, with headers where asked for."""
        return as_batch(self.held, self.cursor.topic, self.cursor.partition)


@dataclass(frozen=True, slots=True)
class EndReached:
    """A partition is read to its end, `offset`."""

    cursor: Cursor
    offset: int


@dataclass(frozen=True, slots=True)
class FetchFailed:
    """A partition can't be read at `offset`. Reported once; it is tried again until it is put elsewhere or removed."""

    cursor: Cursor
    offset: int
    error: TidelogError


FetchEvent = Fetched | EndReached | FetchFailed
