"""The rows of Delta's classic checkpoint as Arrow columns: what is written, and what is kept of others' files."""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelog.log.base.parquet_checksums import SealingSink, open_parquet
from tidelog.log.delta.disk_format import FORMAT_VERSION

_TEXTS = pa.map_(pa.string(), pa.string())
_NAMES = pa.list_(pa.string())
_FILE = {"partitionValues": _TEXTS, "size": pa.int64(), "stats": pa.string(), "tags": _TEXTS}
# In the footer of a checkpoint that tidelog wrote; the value is the on-disk format's version.
MARK = b"tidelog"
# Rows of `add` that are worth a row group of their own.
WORTH_A_GROUP = 4_096
# In the footer, too: the CRC-32 of each row group's bytes, in their order, separated by commas.
CHECKSUMS = b"tidelog.row-groups.crc32"
SCHEMA = pa.schema(
    {
        "txn": pa.struct({"appId": pa.string(), "version": pa.int64(), "lastUpdated": pa.int64()}),
        "add": pa.struct(
            {"path": pa.string(), "modificationTime": pa.int64(), "dataChange": pa.bool_()} | _FILE,
        ),
        "remove": pa.struct(
            {
                "path": pa.string(),
                "deletionTimestamp": pa.int64(),
                "dataChange": pa.bool_(),
                "extendedFileMetadata": pa.bool_(),
            }
            | _FILE
        ),
        "metaData": pa.struct(
            {
                "id": pa.string(),
                "name": pa.string(),
                "description": pa.string(),
                "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
                "schemaString": pa.string(),
                "partitionColumns": _NAMES,
                "configuration": _TEXTS,
                "createdTime": pa.int64(),
            }
        ),
        "protocol": pa.struct(
            {
                "minReaderVersion": pa.int32(),
                "minWriterVersion": pa.int32(),
                "readerFeatures": _NAMES,
                "writerFeatures": _NAMES,
            }
        ),
    }
)
# Most texts differ from row to row: a dictionary of them is work for nothing. The keys of maps don't.
_MAPS = [f"{kind.name}.{field.name}" for kind in SCHEMA for field in kind.type if field.type == _TEXTS]
_REPEATED = [f"{name}.key_value.key" for name in _MAPS]


def rows_of(kind: str, bodies: Sequence[Mapping[str, Any]]) -> pa.StructArray:
    """An entry's actions of one kind, as JSON has them, as rows of a checkpoint."""
    target = SCHEMA.field(kind).type
    return pa.array([_storable(body, target) for body in bodies], target)


def _storable(body: Mapping[str, Any], target: pa.StructType) -> dict[str, Any]:
    """The fields that a checkpoint keeps; Arrow takes maps as pairs."""
    values = {}
    for field in target:
        value = body.get(field.name)
        if value is not None and pa.types.is_map(field.type):
            value = list(value.items())
        elif value is not None and pa.types.is_struct(field.type):
            value = _storable(value, field.type)
        values[field.name] = value
    return values


def read_kinds(file: pq.ParquetFile, columns: Mapping[str, Sequence[str]], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """A checkpoint's rows by row groups, with the columns of those kinds of action that a group has.

    `columns`: those to read of each kind, by their paths.
    """
    for group, kinds in enumerate(kinds_by_group(file.metadata, columns)):
        yield from read_group(file, group, kinds, columns, batch_rows)


def read_group(
    file: pq.ParquetFile, group: int, kinds: Iterable[str], columns: Mapping[str, Sequence[str]], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    """The rows of a row group that has these kinds of action; none where it has none of them."""
    if wanted := [path for kind in kinds for path in columns[kind]]:
        yield from file.iter_batches(batch_rows, row_groups=[group], columns=wanted)


def kinds_by_group(metadata: pq.FileMetaData, kinds: Iterable[str]) -> list[list[str]]:
    """Which of some kinds of action each row group has.

    A group whose statistics say that a kind has no value there is read without it: most groups have one kind of four,
    and a column of nulls takes as long to decode as one of numbers.
    """
    leaves: dict[str, list[int]] = {kind: [] for kind in kinds}
    for leaf in range(metadata.num_columns):
        kind = metadata.schema.column(leaf).path.partition(".")[0]
        if kind in leaves:
            leaves[kind].append(leaf)
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return [[kind for kind in leaves if not all(_is_null(chunks.column(i)) for i in leaves[kind])] for chunks in groups]


def _is_null(column: pq.ColumnChunkMetaData) -> bool:
    """Whether the statistics say that a column has no value in a row group."""
    statistics = column.statistics
    return statistics is not None and statistics.has_null_count and statistics.null_count == column.num_values


def read_rows(source: Any, kinds: Iterable[str], batch_rows: int) -> Iterator[tuple[str, pa.StructArray]]:
    """(kind, rows) of these kinds in a checkpoint's file, a batch at a time, in the columns of `SCHEMA`.

    Other engines' files may have further columns, which are left out, and lack some, which are null.
    """
    columns = {kind: [f"{kind}.{field.name}" for field in SCHEMA.field(kind).type] for kind in kinds}
    with open_parquet(source, size=None, sealed=False) as file:
        for batch in read_kinds(file, columns, batch_rows):
            for kind in batch.schema.names:
                array = batch.column(kind)
                if array.null_count < len(array):
                    yield kind, _conformed(array.filter(array.is_valid()), SCHEMA.field(kind).type)


def _conformed(rows: pa.StructArray, target: pa.StructType) -> pa.StructArray:
    if rows.type == target:
        return rows
    present = {field.name for field in rows.type}
    columns = [
        rows.field(field.name).cast(field.type) if field.name in present else pa.nulls(len(rows), field.type)
        for field in target
    ]
    return pa.StructArray.from_arrays(columns, fields=list(target))


def without(rows: pa.StructArray, field: str, gone: pa.Array) -> pa.StructArray:
    """The rows whose `field` is none of `gone`."""
    return rows.filter(pc.invert(pc.is_in(rows.field(field), gone))) if len(gone) else rows


def since(rows: pa.StructArray, field: str, since_ms: Any, *, keep_null: bool) -> pa.StructArray:
    """The rows whose time `field` is `since_ms` or later, one for all or for each; `keep_null`: and those without."""
    return rows.filter(pc.fill_null(pc.greater_equal(rows.field(field), since_ms), keep_null))


class RowWriter:
    """Writes a checkpoint's rows to `file` by row groups of about `group_rows`; a context manager.

    A group has one kind of rows, and the last one what is left of all. What waits to be written is bounded,
    however large the checkpoint is. `rows` counts those of each kind, `bytes` is the file's length in the end.
    """

    def __init__(self, file: BinaryIO, group_rows: int) -> None:
        self._summed = _Summed(file)
        self._sink = SealingSink(self._summed)
        self._writer = pq.ParquetWriter(
            self._sink,
            SCHEMA.with_metadata({MARK: str(FORMAT_VERSION).encode()}),
            compression="zstd",
            use_dictionary=_REPEATED,
            write_page_checksum=True,
        )
        self._group_rows = group_rows
        self._waiting: dict[str, list[pa.StructArray]] = {kind: [] for kind in SCHEMA.names}
        self._checksums: list[int] = []
        self.rows = dict.fromkeys(SCHEMA.names, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            self._sink.abandon(self._writer)
            return
        if sum(map(len, self._waiting["add"])) >= WORTH_A_GROUP:
            self._flush(["add"])
        self._flush(SCHEMA.names)
        self._writer.add_key_value_metadata({CHECKSUMS.decode(): ",".join(map(str, self._checksums))})
        self._sink.finish(self._writer)

    @property
    def bytes(self) -> int:
        """How many bytes were written so far."""
        return self._sink.size

    def write(self, kind: str, rows: pa.StructArray) -> None:
        """Add rows of one kind."""
        if len(rows):
            waiting = self._waiting[kind]
            waiting.append(rows)
            self.rows[kind] += len(rows)
            if sum(map(len, waiting)) >= self._group_rows:
                self._flush([kind])

    def _flush(self, kinds: Iterable[str]) -> None:
        """Write what waits of these kinds as a row group."""
        tables = []
        for kind in kinds:
            if self._waiting[kind]:
                rows = pa.chunked_array(self._waiting[kind])
                columns = {f.name: rows if f.name == kind else pa.nulls(len(rows), f.type) for f in SCHEMA}
                tables.append(pa.table(columns, schema=SCHEMA))
                self._waiting[kind] = []
        if tables:
            table = pa.concat_tables(tables)
            self._summed.begin()
            self._writer.write_table(table, row_group_size=len(table))
            self._checksums.append(self._summed.checksum)


class _Summed:
    """Passes bytes on to a file and sums them up: `checksum` is the CRC-32 of those since `begin`."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.checksum = 0

    def begin(self) -> None:
        """Begin again."""
        self.checksum = 0

    def write(self, data: Any) -> int:
        """Pass bytes on."""
        self.checksum = zlib.crc32(data, self.checksum)
        return self._file.write(data)
