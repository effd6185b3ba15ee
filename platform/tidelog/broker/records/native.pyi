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

def columns(
    batches: list[memoryview],
    bodies: list[bytes | memoryview | None],
    import_from_c: Callable[[int, pa.Schema], pa.RecordBatch],
    schema: pa.Schema,
) -> tuple[pa.RecordBatch, list[int], int, int, int] | None:
    """The records of batches as `tidelog.broker.records.columns.COLUMNS`.

    `bodies`: what the records of a batch were unpacked to, None for one that is not packed. `import_from_c`:
    `pyarrow.RecordBatch._import_from_c`. Gives the records, how many each batch has, the earliest and the latest
    timestamp (ms since the epoch; the first is after the second where no record has one), and the bytes of the largest
    key, value and headers together. A batch that is not plainly right has 0 records. None for 2 GiB and more. Raises
    `MemoryError`.
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
