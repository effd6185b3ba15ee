"""Record batches read and written in native code, without the interpreter's lock; what is not plain is left out."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from tidelog.broker.records.columns import Page

SOURCE: str
"""The SHA-256 of the sources that this was built from, in hex."""

def is_good(batch: bytes | memoryview, most_bytes: int) -> bool:
    """Whether `tidelog.broker.records.batches.check` takes a batch; if not, it says why."""

def crc32c(data: bytes | memoryview, by_tables: bool = False) -> int:
    """The checksum of bytes; `by_tables`: as on a processor that has no instruction for it."""

class Notes:
    """The records of batches, noted where they are in memory, which is kept as long.

    How many there are, and of all of them: the earliest and the latest timestamp (ms since the epoch; the first is
    after the second where no record has one), how many lack a timestamp and how many a key, and the bytes of the
    largest key, value and headers together. `counts`: records of each batch; 0 for one that is not plainly right, -1
    for one that `is_good` refuses.
    """

    counts: list[int]
    @property
    def records(self) -> int: ...
    @property
    def earliest_ms(self) -> int: ...
    @property
    def latest_ms(self) -> int: ...
    @property
    def timeless(self) -> int: ...
    @property
    def keyless(self) -> int: ...
    @property
    def most_bytes(self) -> int: ...
    @property
    def has_headers(self) -> bool: ...
    def part(self, first: int, end: int) -> tuple[int, ...]:
        """See `tidelog.log.segments.noted.Notes`."""

    def keys(self, first: int, end: int, most: int) -> list[bytes | None]:
        """See `tidelog.log.segments.noted.Notes`."""

    def columns(
        self, import_from_c: Callable[[int, pa.Schema], pa.RecordBatch], schema: pa.Schema, first: int, end: int
    ) -> pa.RecordBatch:
        """The records of batches `first` to `end` as `tidelog.broker.records.columns.COLUMNS`.

        `import_from_c`: `pyarrow.RecordBatch._import_from_c`. Raises `MemoryError`.
        """

def read(batches: list[memoryview], bodies: list[bytes | memoryview | None], most_bytes: int) -> Notes | None:
    """Note the records of batches. None for 2 GiB and more. Raises `MemoryError`.

    `bodies`: what the records of a batch were unpacked to, None for one that is not packed. Those are checked first, as
    `is_good` does, where `most_bytes` is not negative.
    """

def batches(
    export_to_c: Callable[[int], None], epoch: int, most_bytes: int, is_sealed: bool
) -> Sequence[tuple[bytes, int, int]] | None:
    """Records as batches that are not packed, each with its first and last offset; None for what is not plain.

    `export_to_c`: the method `_export_to_c` of records as `tidelog.log.delta.schema.RECORDS`, or with headers.
    `most_bytes`: see `RecordCodec.batches`. Without `is_sealed` they have no checksum yet.
    """

def thrift(data: bytes | memoryview, at: int, end: int) -> tuple[dict[int, Any], int]:
    """See `tidelog.broker.records.columns.StoredRows.thrift`."""

class Rows:
    """See `tidelog.broker.records.columns.StoredRows`."""

    @property
    def size(self) -> int: ...
    @property
    def next_offset(self) -> int: ...
    def add(self, count: int, columns: list[list[Page]], base: int, first: int, low: int, end: int) -> bool: ...
    def batches(
        self, epoch: int, most_bytes: int, most_in_all: int, stop: int, is_sealed: bool
    ) -> Sequence[tuple[bytes, int, int]] | None:
        """Without `is_sealed` they have no checksum yet."""
