"""Typed rows: as JSON in a log entry, as columns of a Parquet file, as Delta's schema (docs/format.md, "Rows").

A row maps columns to values: str, int, bool, bytes, ms since the epoch for a timestamp, a list of such mappings for a
list of structs. A column without a value is not in it. JSON and Parquet give the same rows back.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from tidelog.log.base.parquet_checksums import finish_in_memory, open_parquet
from tidelog.log.delta.schema import DELTA_TYPES, TIMESTAMP, delta_schema
from tidelog.log.delta.table_schema import TableShape

Row = Mapping[str, Any]

POSITION = "position"
# Fewer rows than this are not worth compressing.
_WORTH_COMPRESSING = 100
# Reading fewer rows takes less time than handing their columns to threads.
_WORTH_THREADS = 10_000


def list_of(**columns: pa.DataType) -> pa.DataType:
    """The type of a list of structs with these columns."""
    return pa.list_(pa.field("element", pa.struct(list(columns.items()))))


class RowSchema:
    """The columns of one kind of rows: {name: Arrow type}.

    Types: string, int32, int64, bool, binary, timestamp (UTC, µs; values are whole ms), and lists of structs of these.
    `later`: columns that tables made before them lack; Delta's readers don't see them there. `growth`: the columns that
    each version of a table after the first one adds (docs/format.md, R12); a table is made in version 1.
    """

    def __init__(
        self,
        columns: Mapping[str, pa.DataType],
        later: Iterable[str] = (),
        growth: Sequence[Mapping[str, pa.DataType]] = (),
    ) -> None:
        self._kinds: dict[str, pa.DataType] = {}
        self._since: dict[str, int] = {}
        self._shapes: list[TableShape] = []
        for version, added in enumerate((columns, *growth), start=1):
            self._kinds |= added
            self._since |= dict.fromkeys(added, version)
            fields = [("base_offset", pa.int64()), (POSITION, pa.int64()), *self._kinds.items()]
            self._shapes.append(TableShape(delta_schema(fields), ("base_offset",), later=frozenset(later)))
        self._json = {name: _ColumnJson.of(kind) for name, kind in self._kinds.items()}
        self.file = pa.schema([pa.field(POSITION, pa.int64()), *(pa.field(n, t) for n, t in self._kinds.items())])

    @property
    def version(self) -> int:
        """The newest version of tables of this kind."""
        return len(self._shapes)

    def shape(self, version: int = 1) -> TableShape:
        """What the columns of a table of that version must be."""
        return self._shapes[version - 1]

    def version_of(self, rows: Iterable[Row]) -> int:
        """The oldest version of a table that has all columns in which these rows have values."""
        named = {name for row in rows for name, value in row.items() if value is not None}
        return max((self._since[name] for name in named), default=1)

    @classmethod
    def from_delta(cls, schema: str) -> "RowSchema":
        """The columns that Delta's JSON of a table's schema names. Raises ValueError, KeyError, TypeError."""
        fields = {f["name"]: _arrow_type(f["type"]) for f in orjson.loads(schema)["fields"]}
        return cls({name: kind for name, kind in fields.items() if name not in ("base_offset", POSITION)})

    # --- JSON ----------------------------------------------------------------------------------------------

    def to_json(self, row: Row) -> dict[str, Any]:
        """The row as a log entry holds it: bytes are base64. Raises KeyError for a column that is not there."""
        return {name: _to_json(self._json[name], value) for name, value in row.items() if value is not None}

    def from_json(self, body: object) -> Row:
        """The row of a log entry. Raises ValueError when it is none of this kind."""
        return _struct_from_json(self._json, body)

    def checked(self, row: Row) -> Row:
        """The row as JSON gives it back. Raises ValueError when it is none of this kind, or no text can hold it."""
        try:
            return self.from_json(orjson.loads(orjson.dumps(self.to_json(row))))
        except (KeyError, TypeError, AttributeError) as e:  # orjson refuses text that is no Unicode by a TypeError
            raise ValueError(str(e)) from e

    # --- Parquet -------------------------------------------------------------------------------------------

    def to_file(self, rows: Sequence[tuple[int, Row]]) -> bytes:
        """The Parquet file of (position, row)s, in their order, without the columns that no row has a value of.

        To write the rows that most entries hold takes a third of the time so.
        """
        values = [r for _, r in rows]
        valued = {name for v in values for name, value in v.items() if value is not None}
        fields = [field for field in self.file if field.name in valued]
        columns = [pa.array([position for position, _ in rows], pa.int64())]
        columns.extend(_column([v.get(field.name) for v in values], field.type) for field in fields)
        table = pa.Table.from_arrays(columns, schema=pa.schema([self.file.field(POSITION), *fields]))
        sink = pa.BufferOutputStream()
        writer = pq.ParquetWriter(
            sink,
            table.schema,
            compression="none" if len(rows) < _WORTH_COMPRESSING else "zstd",
            use_dictionary=len(rows) >= _WORTH_COMPRESSING,
            write_statistics=[POSITION],
            store_schema=False,
            write_page_checksum=True,
        )
        writer.write_table(table)
        return bytes(finish_in_memory(writer, sink))

    def from_file(self, source: Any, size: int | None = None) -> list[tuple[int, Row]]:
        """The (position, row)s of a Parquet file. Raises as `open_parquet`, and KeyError when it has no positions.

        Another column that it does not have is one that no row has a value of.
        """
        with open_parquet(source, size=size, sealed=True) as file:
            there = set(file.schema_arrow.names)
            if POSITION not in there:
                raise KeyError(f"it has no column '{POSITION}'")
            fields = [field for field in self.file if field.name in there]
            threads = file.metadata.num_rows >= _WORTH_THREADS
            table = file.read(columns=[field.name for field in fields], use_threads=threads)
        expected = pa.schema(fields)
        if table.schema != expected:  # another writer's variants of the same types
            table = table.cast(expected)
        rows: list[dict[str, Any]] = [{} for _ in range(table.num_rows)]
        for field in fields[1:]:
            column = table.column(field.name)
            if column.null_count < len(rows):
                for row, value in zip(rows, _values(column, field.type), strict=True):
                    if value is not None:
                        row[field.name] = value
        return list(zip(table.column(POSITION).to_pylist(), rows, strict=True))


def _arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        return {name: arrow for arrow, name in DELTA_TYPES.items()}[kind]
    if kind["type"] == "array":
        return pa.list_(pa.field("element", _arrow_type(kind["elementType"])))
    return pa.struct([pa.field(f["name"], _arrow_type(f["type"])) for f in kind["fields"]])


# --- JSON --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ColumnJson:
    """How JSON has the values of a column, looked up in its type once.

    `kind`: Python's type in JSON. `limit`: of integers. `columns`: of a list of structs; None for all else.
    """

    kind: type | None
    is_binary: bool
    limit: int | None
    columns: "Mapping[str, _ColumnJson] | None"

    @classmethod
    def of(cls, kind: pa.DataType) -> "_ColumnJson":
        is_structs = pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
        columns = {f.name: cls.of(f.type) for f in kind.value_type} if is_structs else None
        return cls(_PYTHON.get(kind), pa.types.is_binary(kind), _LIMITS.get(kind), columns)


def _to_json(json: _ColumnJson, value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, list):
        columns = json.columns or {}
        return [{n: _to_json(columns[n], v) for n, v in item.items() if v is not None} for item in value]
    return value


def _struct_from_json(columns: Mapping[str, _ColumnJson], body: object) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise ValueError(f"{body!r} is no row")
    unknown = body.keys() - columns.keys()
    if unknown:
        raise ValueError(f"there is no column {min(unknown)!r}")
    return {name: _from_json(name, columns[name], value) for name, value in body.items()}


def _from_json(name: str, json: _ColumnJson, value: Any) -> Any:
    if json.columns is not None and isinstance(value, list):
        return [_struct_from_json(json.columns, item) for item in value]
    if type(value) is not json.kind:
        raise ValueError(f"column {name!r} is {value!r}")
    if json.is_binary:
        return b64decode(str(value), validate=True)
    if json.limit is not None and isinstance(value, int) and not -json.limit <= value < json.limit:
        raise ValueError(f"column {name!r} is {value}, which it has no room for")
    return value


_PYTHON: Mapping[pa.DataType, type] = {
    pa.string(): str,
    pa.int32(): int,
    pa.int64(): int,
    pa.bool_(): bool,
    pa.binary(): str,
    TIMESTAMP: int,
}
_LIMITS: Mapping[pa.DataType, int] = {pa.int32(): 2**31, pa.int64(): 2**63, TIMESTAMP: 2**63 // 1000}


# --- Arrow -------------------------------------------------------------------------------------------------


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == TIMESTAMP:
        return pa.array([None if v is None else v * 1000 for v in values], TIMESTAMP)
    return pa.array(values, kind)


def _values(column: pa.ChunkedArray, kind: pa.DataType) -> Iterable[Any]:
    if kind == TIMESTAMP:
        return [None if v is None else v // 1000 for v in column.cast(pa.int64()).to_pylist()]
    found: list[Any] = column.to_pylist()
    return map(_without_nulls, found) if pa.types.is_list(kind) else found


def _without_nulls(items: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    if items is None:
        return None
    return [
        {n: _without_nulls(v) if isinstance(v, list) else v for n, v in item.items() if v is not None} for item in items
    ]
