"""Writing staged segments again: under a new name, or with new timestamps, when the log refused the first ones."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from tidelog.log.base.clock import Ids
from tidelog.log.base.errors import CorruptSegmentError, MissingSegmentError, ObjectNotFoundError
from tidelog.log.base.parquet_checksums import open_parquet
from tidelog.log.config.topics_and_lakes import Codec
from tidelog.log.delta import layout, schema
from tidelog.log.segments.writer import SegmentWriter, Staged
from tidelog.log.storage.port import Storage
from tidelog.log.typed.placing import widened
from tidelog.log.typed.value_typing import Typing


def restage(
    storage: Storage,
    folder: str,
    staged: Sequence[Staged],
    *,
    version: int,
    codec: Codec,
    ids: Ids,
    timestamp_ms: int | None = None,
    typing: Typing | None = None,
) -> list[Staged]:
    """The same records in new segments, known at `version`.

    The old files stay until they are purged: their writer may commit them again after an unknown outcome. The
    new ones keep their names' first part, so that such a repeat is known for one.
    `timestamp_ms` (since the epoch) replaces every timestamp, as LogAppendTime wants it. `typing`: of a typed topic,
    whose columns are copied as they are, to what its table has by now. Memory is bounded by a
    row group. Raises `MissingSegmentError` when a segment is already purged, `CorruptSegmentError` when it is not what
    was written.
    """
    again = []
    columns = schema.SEGMENT if typing is None else typing.segment
    for old in staged:
        path = layout.written_again(old.path, version, ids.new())
        with storage.create(f"{folder}/{path}") as sink:
            writer = SegmentWriter(sink, codec, columns)
            try:
                for records in _records(storage, folder, old, columns):
                    writer.write(_stamped(records, timestamp_ms))
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


def _records(storage: Storage, folder: str, old: Staged, columns: pa.Schema) -> Iterator[pa.Table]:
    """A segment's records, by row group; null in columns that its table did not have when it was staged."""
    try:
        with (
            storage.open(f"{folder}/{old.path}", old.size) as source,
            open_parquet(source, size=old.size, sealed=True) as file,
        ):
            for group in range(file.metadata.num_row_groups):
                yield _as_known(file.read_row_group(group, use_threads=False), columns)
    except (pa.ArrowException, KeyError, OSError, ValueError) as e:
        raise CorruptSegmentError(
            f"Segment {folder}/{old.path} can't be written again: it can't be read ({e}). Write the records again, or"
            " restore the file from a copy."
        ) from e
    except ObjectNotFoundError as e:
        raise MissingSegmentError(
            f"Segment {folder}/{old.path} can't be written again: it is not in storage. A purge takes a segment that"
            " was staged long ago and is in no entry for an orphan, and other programs may delete files, too. Write"
            " the records again, or restore the file from a copy."
        ) from e


def _as_known(table: pa.Table, columns: pa.Schema) -> pa.Table:
    """Raises KeyError for what every segment has, ValueError for what the table does not."""
    plain = table.select(schema.SEGMENT.names).cast(schema.SEGMENT)
    if columns is schema.SEGMENT:
        return plain
    for name in table.schema.names[len(plain.schema) :]:
        plain = plain.append_column(table.schema.field(name), table.column(name))
    return widened(plain, columns)


def _stamped(records: pa.Table, timestamp_ms: int | None) -> pa.Table:
    if timestamp_ms is None:
        return records
    times = pa.repeat(pa.scalar(timestamp_ms * 1000, pa.int64()), records.num_rows).cast(schema.TIMESTAMP)
    return records.set_column(records.schema.get_field_index("timestamp"), "timestamp", times)
