"""Writing staged segments again: under a new name, or with new timestamps, when the log refused the first ones."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tidelog.log import layout, schema
from tidelog.log.clock import Ids
from tidelog.log.config import Codec
from tidelog.log.errors import MissingSegmentError, ObjectNotFoundError
from tidelog.log.segments import SegmentWriter, Staged
from tidelog.log.storage.port import Storage


def restage(
    storage: Storage,
    folder: str,
    staged: Sequence[Staged],
    *,
    version: int,
    codec: Codec,
    ids: Ids,
    timestamp_ms: int | None = None,
) -> list[Staged]:
    """The same records in new segments, known at `version`.

    The old files stay until they are purged: whoever staged them may commit them again after an unknown outcome. The
    new ones keep their names' first part, so that such a repeat is known for one.
    `timestamp_ms` (since the epoch) replaces every timestamp, as LogAppendTime wants it. Memory is bounded by a
    row group. Raises `MissingSegmentError` when a segment is already purged.
    """
    again = []
    for old in staged:
        path = layout.written_again(old.path, version, ids.new())
        with _source(storage, folder, old) as source, storage.create(f"{folder}/{path}") as sink:
            writer = SegmentWriter(sink, codec)
            try:
                with pq.ParquetFile(source) as file:
                    for group in range(file.metadata.num_row_groups):
                        writer.write(_stamped(file.read_row_group(group, use_threads=False), timestamp_ms))
                writer.close()
            except BaseException:
                writer.abandon()
                raise
        again.append(
            replace(
                old,
                path=path,
                size=writer.size,
                known_version=version,
                min_timestamp_ms=writer.min_timestamp_ms,
                max_timestamp_ms=writer.max_timestamp_ms,
            )
        )
    return again


def _source(storage: Storage, folder: str, old: Staged) -> Any:
    try:
        return storage.open(f"{folder}/{old.path}", old.size)
    except ObjectNotFoundError as e:
        raise MissingSegmentError(
            f"Segment {folder}/{old.path} can't be written again: it is not in storage. A purge takes a segment that"
            " was staged long ago and is in no entry for an orphan, and other programs may delete files, too. Write"
            " the records again, or restore the file from a copy."
        ) from e


def _stamped(records: pa.Table, timestamp_ms: int | None) -> pa.Table:
    records = records.select(schema.SEGMENT.names).cast(schema.SEGMENT)
    if timestamp_ms is None:
        return records
    times = pa.repeat(pa.scalar(timestamp_ms * 1000, pa.int64()), records.num_rows).cast(schema.TIMESTAMP)
    return records.set_column(records.schema.get_field_index("timestamp"), "timestamp", times)
