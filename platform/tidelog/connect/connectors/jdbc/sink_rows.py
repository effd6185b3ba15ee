"""Rows of records: what of a record is in the primary key and what beside it, as rules without a database."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Any, Final

from tidelog.connect.connectors.jdbc.sql_types import sql_value
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import SinkRecord
from tidelog.connect.data.schema import INT32, INT64, STRING, ConnectSchema, SchemaType

KAFKA_COLUMNS: Final = ("__connect_topic", "__connect_partition", "__connect_offset")


@dataclass(frozen=True)
class SinkRow:
    """A row of a record. `columns`: the schemas by names, those of `keys` first; `values` None deletes the row."""

    table: str
    columns: Mapping[str, ConnectSchema]
    keys: tuple[str, ...]
    key: tuple[Any, ...]
    values: Mapping[str, Any] | None


@dataclass(frozen=True)
class RowRule:
    """How rows are made: the sink's keys table.name.format, pk.mode, pk.fields, fields.whitelist, delete.enabled.

    `zone`: of times in columns that have none. `written`: a name as the database has it.
    """

    table_format: str
    pk_mode: str
    pk_fields: Sequence[str]
    whitelist: Sequence[str]
    deletes: bool
    zone: tzinfo = UTC
    written: Callable[[str], str] = str

    def row(self, record: SinkRecord) -> SinkRow:
        """Return the row of a record. Raises `DataError` for one that has none."""
        where = f"the record at offset {record.offset} of {record.original_topic}-{record.original_partition}"
        keys = {self.written(name): one for name, one in self._keys(record, where).items()}
        table = self.written(self.table_format.replace("${topic}", record.topic))
        key = tuple(sql_value(value, self.zone) for _, value in keys.values())
        columns = {name: schema for name, (schema, _) in keys.items()}
        if record.value is None:
            if not self.deletes:
                raise DataError(
                    f"The value of {where} is null, and delete.enabled is false. Set it, or filter tombstones."
                )
            return SinkRow(table, columns, (*keys,), key, None)
        schema = record.value_schema
        if schema is None or schema.type is not SchemaType.STRUCT:
            raise DataError(f"The value of {where} is no struct with a schema. Use a converter with schemas.")
        values = dict(zip(keys, key, strict=True))
        for field in schema.fields:
            name = self.written(field.name)
            if name not in keys and (not self.whitelist or field.name in self.whitelist):
                columns[name] = field.schema
                found = record.value.get(field.name)
                values[name] = sql_value(field.schema.default if found is None else found, self.zone)
        return SinkRow(table, columns, (*keys,), key, values)

    def _keys(self, record: SinkRecord, where: str) -> dict[str, tuple[ConnectSchema, Any]]:
        """{column: (schema, value)} of the primary key."""
        if self.pk_mode == "none":
            return {}
        if self.pk_mode == "kafka":
            names = self.pk_fields or KAFKA_COLUMNS
            found = ((STRING, record.original_topic), (INT32, record.original_partition), (INT64, record.offset))
            return dict(zip(names, found, strict=True))
        side = "key" if self.pk_mode == "record_key" else "value"
        schema, value = (record.key_schema, record.key) if side == "key" else (record.value_schema, record.value)
        if schema is None or value is None:
            raise DataError(f"The {side} of {where} is null or has no schema; pk.mode={self.pk_mode} needs it.")
        if schema.type is not SchemaType.STRUCT:
            if side == "value" or len(self.pk_fields) != 1:
                raise DataError(
                    f"The {side} of {where} is no struct: pk.mode=record_key with one name in pk.fields takes it."
                )
            return {self.pk_fields[0]: (schema, value)}
        fields = {field.name: field.schema for field in schema.fields}
        missing = [name for name in self.pk_fields if name not in fields]
        if missing:
            raise DataError(f"The {side} of {where} has no field {missing[0]!r}, which pk.fields names. Correct it.")
        return {name: (fields[name], value.get(name)) for name in self.pk_fields or fields}


def runs_of(rows: Sequence[SinkRow], most: int) -> list[list[SinkRow]]:
    """Rows in their order, in runs that one statement can write: of one table, columns, kind, up to `most`."""
    runs: list[list[SinkRow]] = []
    for row in rows:
        last = runs[-1][0] if runs else None
        same = last is not None and (last.table, (*last.columns,), last.values is None) == (
            row.table, (*row.columns,), row.values is None,
        )  # fmt: skip
        if same and len(runs[-1]) < most:
            runs[-1].append(row)
        else:
            runs.append([row])
    return runs


def newest(rows: Sequence[SinkRow]) -> list[SinkRow]:
    """The last row of each key, which is what upserts, updates and deletes of all of them leave."""
    return [*{row.key: row for row in rows}.values()]
