"""Which columns of a segment are read for those that a reader wants, and how those are made of them."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from tidelog.log.delta import schema
from tidelog.log.typed.placing import placed
from tidelog.log.typed.value_typing import VALUE_LENGTH, VALUE_SCHEMA, Typing


class WantedColumns:
    """The columns of a plain topic's segments that a reader wants: they are read, and no others.

    `given`: what the reader gets, `position` first.
    """

    is_plain = True

    def __init__(self, given: pa.Schema) -> None:
        self.given = given
        self.names: tuple[str, ...] = tuple(given.names)

    def read(self, _: Any) -> pa.Schema:
        """The columns that are read of a row group, by what the footer says of it."""
        return self.given

    def cast(self, batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
        """What was read, with these columns and their types: other engines have their own for the same ones.

        Raises KeyError for a column that the file lacks.
        """
        if batch.schema.equals(columns):
            return batch
        names = batch.schema.names
        missing = [name for name in columns.names if name not in names]
        if missing:
            raise KeyError(f"it has no column '{missing[0]}'")
        batch = batch.select(columns.names)
        return batch if batch.schema.types == columns.types else batch.cast(columns)

    def made(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What the reader gets of what was read."""
        return batch


class WantedTyped(WantedColumns):
    """The columns of a typed topic's segments that a reader wants.

    A segment may be older than what the table knows by now: it lacks columns, or fields of them. A value that is
    derived needs the columns of its table, which are read where a row group has such a value, and nowhere else.
    """

    def __init__(self, given: pa.Schema, typing: Typing, *, derives: bool) -> None:
        super().__init__(given)
        self.is_plain = all(name in schema.SEGMENT.names for name in given.names)
        self._typing = typing
        sources = [VALUE_SCHEMA, VALUE_LENGTH, *([] if typing.columns is None else [schema.COLUMNS])]
        others = [typing.segment.field(name) for name in sources if derives and name not in given.names]
        self._deriving = pa.schema([*given, *others]) if derives else None

    def read(self, group: Any) -> pa.Schema:
        """The columns that are read of a row group, by what the footer says of it."""
        return self.given if self._deriving is None or not _may_derive(group) else self._deriving

    def cast(self, batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
        """What was read, with these columns and their types; null where the file is older than one."""
        if batch.schema.equals(columns):
            return batch
        own = pa.schema([field for field in columns if field.name in schema.SEGMENT.names])
        plain = super().cast(batch, own) if len(own) else batch
        arrays = [
            plain.column(field.name) if field.name in own.names else _typed(batch, field, plain.num_rows)
            for field in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=columns)

    def made(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What the reader gets of what was read: values as they were sent, derived where they are not stored."""
        if self._deriving is None or len(batch.schema) != len(self._deriving):
            return batch
        columns = batch.column(schema.COLUMNS) if schema.COLUMNS in batch.schema.names else None
        value, ids, lengths = (batch.column(name) for name in ("value", VALUE_SCHEMA, VALUE_LENGTH))
        values = self._typing.bytes_of(value, ids, lengths, columns)
        arrays = [values if name == "value" else batch.column(name) for name in self.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self.given)


def wanted_columns(names: Sequence[str], typing: Typing | None, *, stored: bool) -> WantedColumns:
    """What is to be read for these columns, `position` first. `stored`: values as they are stored, derived or not."""
    if typing is None:
        return _wanted(tuple(names))
    given = pa.schema([typing.segment.field(name) for name in names])
    return WantedTyped(given, typing, derives="value" in names and not stored)


@cache
def _wanted(names: tuple[str, ...]) -> WantedColumns:
    return WantedColumns(pa.schema([schema.SEGMENT.field(name) for name in names]))


def _typed(batch: pa.RecordBatch, field: pa.Field, count: int) -> pa.Array:
    at = batch.schema.get_field_index(field.name)
    if at < 0:
        return pa.nulls(count, field.type)
    return placed(batch.column(at), field.type)


def _may_derive(group: Any) -> bool:
    """Whether values of a row group may be derived, by its statistics."""
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema == VALUE_LENGTH:
            statistics = column.statistics
            nulls = statistics.null_count if statistics is not None and statistics.has_null_count else None
            return bool(nulls != group.num_rows)
    return False
