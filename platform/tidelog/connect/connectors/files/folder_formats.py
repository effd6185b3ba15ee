"""How the folder source reads each format: records behind a position, and the position behind each record."""

import csv
import io
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import orjson
import pyarrow as pa

from tidelog.connect.connectors.arrow_values import connect_schema
from tidelog.connect.connectors.files.stream import FileLine, LineReader
from tidelog.connect.data.errors import ConnectError, DataError
from tidelog.connect.data.schema import STRING, ConnectSchema, struct_of
from tidelog.log.base.parquet_checksums import open_parquet

_BUFFERED_LINES: Final = 1000


@dataclass(frozen=True)
class FileRecord:
    """A value read from a file, and the position behind it; a failed one has the reason in place of the value."""

    position: int
    value: Any = None
    schema: ConnectSchema | None = None
    failure: str = ""


class RecordReader(Protocol):
    """Reads the records of one file."""

    def read(self, most: int) -> list[FileRecord]:
        """Return the next records, up to `most`; [] where none is complete yet."""


def _lines_of(path: Path, position: int, whole: bool) -> LineReader:
    return LineReader(path, position, compressed=path.suffix == ".gz", whole=whole)


class LinesReader:
    """A text for each line."""

    def __init__(self, path: Path, position: int, *, whole: bool) -> None:
        self._lines = _lines_of(path, position, whole)

    def read(self, most: int) -> list[FileRecord]:
        """Return the next lines."""
        return [_decoded(line) for line in self._lines.lines(most)]


def _decoded(line: FileLine) -> FileRecord:
    try:
        return FileRecord(line.end, line.data.decode(), STRING)
    except UnicodeDecodeError as error:
        return FileRecord(line.end, failure=f"no UTF-8: {error}")


class JsonLinesReader:
    """A JSON value, without schema, for each line that is not empty."""

    def __init__(self, path: Path, position: int, *, whole: bool) -> None:
        self._lines = _lines_of(path, position, whole)

    def read(self, most: int) -> list[FileRecord]:
        """Return the next values."""
        records: list[FileRecord] = []
        while len(records) < most:
            lines = self._lines.lines(most - len(records))
            records += [_json(line) for line in lines if line.data.strip()]
            if not lines:
                break
        return records


def _json(line: FileLine) -> FileRecord:
    try:
        return FileRecord(line.end, orjson.loads(line.data))
    except orjson.JSONDecodeError as error:
        return FileRecord(line.end, failure=f"no JSON: {error}")


class CsvReader:
    """A struct of texts for each row; the first row has the names. A row with quoted ends of lines is one record."""

    def __init__(self, path: Path, position: int, separator: str, *, whole: bool) -> None:
        self._separator, self._whole = separator, whole
        self._header_lines = _lines_of(path, 0, whole) if position else None
        self._lines = _lines_of(path, position, whole)
        self._buffer: deque[FileLine] = deque()
        self._pending = b""
        self._schema: ConnectSchema | None = None

    def read(self, most: int) -> list[FileRecord]:
        """Return the next rows."""
        if self._schema is None:
            header = next(self._rows(self._header_lines or self._lines, 1), None)
            if header is None:
                return []
            if self._header_lines is not None:
                self._header_lines = None
                self._buffer.clear()
            self._schema = struct_of({name: STRING.as_optional() for name in self._cells(header)})
        return [self._record(row, self._schema) for row in self._rows(self._lines, most)]

    def _rows(self, lines: LineReader, most: int) -> Iterator[FileLine]:
        """Rows of one line or more: a quote that is open at the end of a line has the next one follow."""
        while most > 0:
            if not self._buffer:
                self._buffer.extend(lines.lines(_BUFFERED_LINES))
            if not self._buffer:
                return
            line = self._buffer.popleft()
            self._pending += line.data
            if self._pending.count(b'"') % 2 and not self._is_last():
                self._pending += b"\n"
                continue
            row, self._pending = self._pending, b""
            if row:
                most -= 1
                yield FileLine(row, line.end)

    def _is_last(self) -> bool:
        """Whether no line comes any more."""
        if self._whole and not self._buffer:
            self._buffer.extend(self._lines.lines(_BUFFERED_LINES))
        return self._whole and not self._buffer

    def _cells(self, row: FileLine) -> list[str]:
        text = io.StringIO(row.data.decode("utf-8-sig"), newline="")
        return next(csv.reader(text, delimiter=self._separator, strict=True))

    def _record(self, row: FileLine, schema: ConnectSchema) -> FileRecord:
        try:
            cells = self._cells(row)
        except (UnicodeDecodeError, csv.Error) as error:
            return FileRecord(row.end, failure=f"no CSV: {error}")
        if len(cells) != len(schema.fields):
            return FileRecord(row.end, failure=f"{len(cells)} cells where the header has {len(schema.fields)}")
        value = {field.name: cell for field, cell in zip(schema.fields, cells, strict=True)}
        return FileRecord(row.end, value, schema)


class ParquetReader:
    """A struct for each row of a Parquet file; the position counts rows. The file must be whole when it appears."""

    def __init__(self, path: Path, position: int) -> None:
        self._path, self._position = path, position
        self._file: Any | None = None
        self._rows: Iterator[Mapping[str, Any]] = iter(())
        self._schema: ConnectSchema | None = None

    def read(self, most: int) -> list[FileRecord]:
        """Return the next rows. Raises `ConnectError` for a file that is none of Parquet's."""
        if self._file is None:
            try:
                self._file = open_parquet(self._path.open("rb"), size=None, sealed=False)
                self._schema = connect_schema(self._file.schema_arrow)
            except (OSError, ValueError, pa.ArrowException) as error:
                raise ConnectError(
                    f"{self._path} is no Parquet file: {error}. Move it away; rename only whole files into the folder."
                ) from error
            self._rows = self._all_rows(self._file, self._position)
        records: list[FileRecord] = []
        for row in self._rows:
            self._position += 1
            records.append(FileRecord(self._position, dict(row), self._schema))
            if len(records) == most:
                break
        return records

    @staticmethod
    def _all_rows(file: Any, skip: int) -> Iterator[Mapping[str, Any]]:
        """Rows behind the first `skip`; row groups before them aren't read."""
        for index in range(file.num_row_groups):
            rows = file.metadata.row_group(index).num_rows
            if skip >= rows:
                skip -= rows
                continue
            yield from file.read_row_group(index).slice(skip).to_pylist(maps_as_pydicts="strict")
            skip = 0


def reader_of(kind: str, path: Path, position: int, separator: str, *, whole: bool = False) -> RecordReader:
    """Return a reader of a format, from a position on. `whole`: nothing comes to the file any more."""
    if kind == "csv":
        return CsvReader(path, position, separator, whole=whole)
    if kind == "parquet":
        return ParquetReader(path, position)
    made = JsonLinesReader if kind == "json" else LinesReader
    return made(path, position, whole=whole)


def refused(path: Path, record: FileRecord) -> DataError:
    """What to say of a record that is not of the format."""
    return DataError(
        f"{path}: what ends at {record.position} is {record.failure}. Correct it under a new name and remove this "
        "one, or set halt.on.error=false to leave such records out."
    )
