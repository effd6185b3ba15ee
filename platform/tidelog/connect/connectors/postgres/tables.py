"""A table as records show it: which of its columns, under which schemas, and its rows as values."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Protocol

from tidelog.connect.connectors.postgres.column_types import PostgresType, TypeModes, reader_of
from tidelog.connect.connectors.postgres.envelopes import envelope_of
from tidelog.connect.connectors.postgres.pgoutput import UNCHANGED, Cell, RelationColumn
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.packed import RecordLayout, StructLayout
from tidelog.connect.data.schema import ConnectSchema, struct_of

RowValues = list[Any]


class TableFacts(NamedTuple):
    """What the catalog says of a table: which columns have NOT NULL, the primary key's (else a unique index's) columns
    in its order, and constant defaults as texts.
    """

    not_null: frozenset[str] = frozenset()
    key: tuple[str, ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()


class TableCatalog(Protocol):
    """What pgoutput does not send."""

    def table(self, schema: str, table: str) -> TableFacts:
        """Of a table as it is now; empty where it is gone."""

    def type(self, oid: int) -> PostgresType:
        """Of a type."""


def any_matches(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether one of several regular expressions matches all of a name; letters of either case, as Debezium has it."""
    compiled = [re.compile(one, re.IGNORECASE) for one in patterns]
    return lambda name: any(one.fullmatch(name) for one in compiled)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which tables and columns are read: `schema.include.list` and its fellows. An empty include list takes all."""

    schemas: Sequence[str] = ()
    no_schemas: Sequence[str] = ()
    tables: Sequence[str] = ()
    no_tables: Sequence[str] = ()
    columns: Sequence[str] = ()
    no_columns: Sequence[str] = ()
    keys: Sequence[tuple[str, tuple[str, ...]]] = ()  # message.key.columns: (pattern of schema.table, columns)

    def key_of(self, schema: str, table: str) -> tuple[str, ...]:
        """The columns that a table's records are keyed by in place of its own key, () where none are named."""
        found = (columns for pattern, columns in self.keys if any_matches([pattern])(f"{schema}.{table}"))
        return next(found, ())

    def takes_table(self, schema: str, table: str) -> bool:
        """Whether a table's rows become records."""
        return (
            schema not in _NOT_USERS
            and passes(schema, self.schemas, self.no_schemas)
            and passes(f"{schema}.{table}", self.tables, self.no_tables)
        )

    def takes_column(self, schema: str, table: str, column: str) -> bool:
        """Whether a column is in the records; those of the key are in any case."""
        return passes(f"{schema}.{table}.{column}", self.columns, self.no_columns)


_NOT_USERS: Final = frozenset({"pg_catalog", "information_schema"})


def passes(name: str, include: Sequence[str], exclude: Sequence[str]) -> bool:
    """Whether a name is in an include list, which is empty where all are, and in no exclude list."""
    return (not include or any_matches(include)(name)) and not (exclude and any_matches(exclude)(name))


class _Column(NamedTuple):
    """A column of records: where it is in a row of the log, and how it is read. `empty`: what stands for null."""

    place: int
    name: str
    read: Callable[[str], Any]
    empty: Any
    unavailable: Any


class TableRows:
    """The records' form of a table: built at each of its Relation messages, for its columns at that time.

    `key_schema`: None where the table has neither a primary key nor a unique index; `key_layout`: of keys, whose parts
    are a row's values. A row is the list of its values, in the order of the columns that are read.
    """

    def __init__(
        self,
        prefix: str,
        schema: str,
        table: str,
        columns: Sequence[RelationColumn],
        catalog: TableCatalog,
        selection: Selection,
        modes: TypeModes,
    ) -> None:
        facts = catalog.table(schema, table)
        self.schema, self.table = schema, table
        # With the schema's name.
        self.id = f"{schema}.{table}"
        self.topic = topic_name(f"{prefix}.{schema}.{table}")
        named = selection.key_of(schema, table)
        if missing := [name for name in named if name not in {one.name for one in columns}]:
            raise DataError(
                f"{schema}.{table} has no column {', '.join(missing)}, which message.key.columns names. Correct it."
            )
        key = named or facts.key
        # Columns of the key that only a whole old row has: without REPLICA IDENTITY FULL, deletes lack them.
        self._beyond_identity = tuple(name for name in named if name not in facts.key)
        self._columns: list[_Column] = []
        fields: dict[str, ConnectSchema] = {}
        defaults = dict(facts.defaults)
        for place, column in enumerate(columns):
            if (
                column.name not in key
                and column.name not in facts.key
                and not selection.takes_column(schema, table, column.name)
            ):
                continue
            reader = reader_of(catalog.type(column.type_oid), column.typmod, modes)
            if reader is None:
                continue
            required = column.name in facts.key or column.name in facts.not_null
            default = reader.read(defaults[column.name]) if column.name in defaults else None
            empty = (reader.empty if default is None else default) if required else None
            self._columns.append(_Column(place, column.name, reader.read, empty, reader.unavailable))
            fields[column.name] = replace(reader.schema, optional=not required, default=default)
        self._key = tuple(name for name in key if name in fields)
        self.row_schema = struct_of(fields, name=f"{self.topic}.Value", optional=True)
        self.envelope = envelope_of(self.topic, self.row_schema)
        self.key_schema = (
            struct_of({name: fields[name] for name in self._key}, name=f"{self.topic}.Key") if self._key else None
        )
        self._count = len(columns)
        self._all = len(self._columns) == len(columns)
        self._readers = [(one.read, one) for one in self._columns]
        places = {name: number for number, name in enumerate(fields)}
        self._key_places = [places[name] for name in self._key]
        self.key_layout = (
            StructLayout(self.key_schema, {name: places[name] for name in self._key}) if self.key_schema else None
        )
        # The layouts of its records: by operation, and whether they have an old and a new row.
        self.layouts: dict[tuple[str, bool, bool], RecordLayout] = {}

    def row(self, cells: Sequence[Cell], old: Sequence[Cell] | None = None) -> RowValues:
        """A row's values. `old`: the whole old row where the log has it, for values that an update left as they were.

        Raises `DataError` for a row that has another number of columns than the table.
        """
        if len(cells) != self._count:
            raise DataError(
                f"PostgreSQL sent a row of {len(cells)} columns for {self.id}, which has {self._count}."
                " Restart the connector's task, so that it reads the table's columns again."
            )
        if not self._all:
            cells = [cells[one.place] for one in self._columns]
        return [
            read(cell) if cell.__class__ is str else self._special(column, cell, old)
            for (read, column), cell in zip(self._readers, cells, strict=True)
        ]

    @staticmethod
    def _special(column: _Column, cell: Cell, old: Sequence[Cell] | None) -> Any:
        """What stands for a value that is not there as a text."""
        if cell is UNCHANGED:
            before = old[column.place] if old is not None else None
            return column.read(before) if isinstance(before, str) else column.unavailable
        if isinstance(cell, bytes):
            raise DataError(
                f"PostgreSQL sent column {column.name} in binary form. Remove `binary` from slot.stream.params."
            )
        return column.empty

    def key(self, row: RowValues) -> RowValues:
        """The values of a row's key, [] of a table without one."""
        return [row[place] for place in self._key_places]

    def old_key(self, row: RowValues, *, whole: bool) -> RowValues:
        """The key of an old row. `whole`: whether the log has all of it. Raises `DataError` where it lacks the key."""
        if self._beyond_identity and not whole:
            raise DataError(
                f"PostgreSQL's log lacks {', '.join(self._beyond_identity)} of an old row of {self.id}, which"
                f" message.key.columns names. Run ALTER TABLE {self.id} REPLICA IDENTITY FULL, or name columns of its"
                " primary key."
            )
        return self.key(row)


def topic_name(name: str) -> str:
    """A topic's name: what Kafka does not allow in one becomes `_`."""
    return _NOT_IN_TOPICS.sub("_", name)


_NOT_IN_TOPICS: Final = re.compile(r"[^a-zA-Z0-9._-]")
