"""Rows to merge of records: the newest change of each key, as rules without a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tidelog.connect.connectors.arrow_values import arrow_schema, arrow_type
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import SinkRecord
from tidelog.connect.data.schema import ConnectSchema, SchemaType


@dataclass(frozen=True)
class KeyedChange:
    """What a record does to the row of its key: `values` None deletes it. `columns`: their types by their names."""

    key: Mapping[str, Any]
    values: Mapping[str, Any] | None
    columns: Mapping[str, pa.DataType]


def change_of(record: SinkRecord, pk_fields: Sequence[str], *, keyed: bool) -> KeyedChange:
    """The change of a record. Raises `DataError` for one without a struct as value, or without the key."""
    where = f"the record at offset {record.offset} of {record.original_topic}-{record.original_partition}"
    key, columns = _key(record, pk_fields, where) if keyed else ({}, {})
    if record.value is None:
        if not keyed:
            raise DataError(f"The value of {where} is null, which is no row. Filter tombstones, or set merge=true.")
        return KeyedChange(key, None, columns)
    schema = record.value_schema
    if schema is None or schema.type is not SchemaType.STRUCT:
        raise DataError(f"The value of {where} is no struct with a schema. Use a converter with schemas.")
    columns = {**columns, **{field.name: field.type for field in arrow_schema(schema) if field.name not in key}}
    values = {one.name: _value(record.value, one.name, one.schema) for one in schema.fields}
    return KeyedChange(key, values | dict(key), columns)


def _value(values: Mapping[str, Any], name: str, schema: ConnectSchema) -> Any:
    found = values.get(name)
    return schema.default if found is None else found


def _key(record: SinkRecord, names: Sequence[str], where: str) -> tuple[dict[str, Any], dict[str, pa.DataType]]:
    schema, key = record.key_schema, record.key
    if schema is None or key is None:
        raise DataError(f"The key of {where} is null or has no schema. Make one with ValueToKey, or set merge=false.")
    if schema.type is not SchemaType.STRUCT:
        if len(names) != 1:
            raise DataError(f"The key of {where} is no struct: pk.fields must have one name for it.")
        return {names[0]: key}, {names[0]: arrow_type(schema)}
    fields = {field.name: field.schema for field in schema.fields}
    missing = [name for name in names if name not in fields]
    if missing:
        raise DataError(f"The key of {where} has no field {missing[0]!r}, which pk.fields names. Correct it.")
    chosen = names or [*fields]
    return {name: key.get(name) for name in chosen}, {name: arrow_type(fields[name]) for name in chosen}


def newest_changes(changes: Sequence[KeyedChange]) -> list[KeyedChange]:
    """The last change of each key."""
    return [*{tuple(change.key.items()): change for change in changes}.values()]


def columns_of(changes: Sequence[KeyedChange]) -> pa.Schema:
    """All columns of the changes, each of the type that the newest change with it has."""
    types: dict[str, pa.DataType] = {}
    for change in changes:
        types |= change.columns
    return pa.schema([pa.field(name, kind) for name, kind in types.items()])
