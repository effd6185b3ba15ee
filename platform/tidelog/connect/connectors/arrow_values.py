"""Connect's values as Arrow tables and back, for Parquet files and Delta tables."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    SCALE,
    STRING,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaField,
    SchemaType,
    array_of,
    date_schema,
    decimal_schema,
    map_of,
    time_schema,
    timestamp_schema,
)

# Decimals of Connect have a scale and no precision.
_PRECISION: Final = 38
_PLAIN: Final[Mapping[SchemaType, pa.DataType]] = {
    SchemaType.INT8: pa.int8(), SchemaType.INT16: pa.int16(), SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(), SchemaType.FLOAT32: pa.float32(), SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(), SchemaType.STRING: pa.string(), SchemaType.BYTES: pa.binary(),
}  # fmt: skip
_LOGICAL: Final[Mapping[str, pa.DataType]] = {
    DATE: pa.date32(), TIME: pa.time64("us"), TIMESTAMP: pa.timestamp("us", "UTC"),
}  # fmt: skip
_OF_ARROW: Final[Sequence[tuple[Any, ConnectSchema]]] = (
    (pa.types.is_boolean, BOOLEAN), (pa.types.is_int8, INT8), (pa.types.is_int16, INT16), (pa.types.is_int32, INT32),
    (pa.types.is_int64, INT64), (pa.types.is_uint8, INT16), (pa.types.is_uint16, INT32), (pa.types.is_uint32, INT64),
    (pa.types.is_float32, FLOAT32), (pa.types.is_float64, FLOAT64), (pa.types.is_string, STRING),
    (pa.types.is_large_string, STRING), (pa.types.is_binary, BYTES), (pa.types.is_large_binary, BYTES),
    (pa.types.is_fixed_size_binary, BYTES), (pa.types.is_date, date_schema()), (pa.types.is_time, time_schema()),
    (pa.types.is_timestamp, timestamp_schema()),
)  # fmt: skip


def arrow_type(schema: ConnectSchema) -> pa.DataType:
    """The Arrow type of a schema's values: timestamps in microseconds of UTC, decimals of 38 digits."""
    if schema.name is not None and schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.name == DECIMAL:
        return pa.decimal128(_PRECISION, int(schema.parameters[SCALE]))
    if schema.type is SchemaType.STRUCT:
        return pa.struct([pa.field(one.name, arrow_type(one.schema)) for one in schema.fields])
    if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
        return pa.list_(arrow_type(schema.value_schema))
    if schema.type is SchemaType.MAP and schema.key_schema is not None and schema.value_schema is not None:
        return pa.map_(arrow_type(schema.key_schema), arrow_type(schema.value_schema))
    return _PLAIN[schema.type]


def arrow_schema(schema: ConnectSchema) -> pa.Schema:
    """The columns of a struct's fields. Raises `DataError` for a schema that is no struct's."""
    if schema.type is not SchemaType.STRUCT:
        raise DataError(f"Columns need structs, not {schema.type.value}: wrap values with HoistField.")
    return pa.schema([pa.field(one.name, arrow_type(one.schema)) for one in schema.fields])


def arrow_table(rows: Sequence[Mapping[str, Any]], schema: pa.Schema | None = None) -> pa.Table:
    """Rows as a table of these columns, or of those that rows without schema have. Raises `DataError`."""
    names = schema.names if schema is not None else [*dict.fromkeys(name for row in rows for name in row)]
    try:
        if schema is None:
            return pa.table({name: pa.array([_plain(row.get(name)) for row in rows]) for name in names})
        columns = [pa.array([_plain(row.get(field.name)) for row in rows], field.type) for field in schema]
        return pa.table(columns, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError) as error:
        raise DataError(
            f"Values can't be columns of the table: {error}. Correct them with Cast or ReplaceField."
        ) from error


def _plain(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    return value


def connect_schema(schema: pa.Schema) -> ConnectSchema:
    """The struct of a table's columns, each optional as the column is. Raises `DataError` for types without one."""
    fields = tuple(SchemaField(field.name, connect_type(field)) for field in schema)
    return ConnectSchema(SchemaType.STRUCT, fields=fields)


def connect_type(field: pa.Field) -> ConnectSchema:
    """The schema of a column's values."""
    found = _connect_type(field.type, field.name)
    return found.as_optional() if field.nullable else found


def _connect_type(kind: pa.DataType, name: str) -> ConnectSchema:
    if pa.types.is_decimal(kind):
        return decimal_schema(kind.scale)
    if pa.types.is_dictionary(kind):
        return _connect_type(kind.value_type, name)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return array_of(connect_type(kind.value_field))
    if pa.types.is_map(kind):
        return map_of(_connect_type(kind.key_type, name), connect_type(kind.item_field))
    if pa.types.is_struct(kind):
        fields = tuple(
            SchemaField(kind.field(index).name, connect_type(kind.field(index))) for index in range(kind.num_fields)
        )
        return ConnectSchema(SchemaType.STRUCT, fields=fields)
    for matches, schema in _OF_ARROW:
        if matches(kind):
            return schema
    raise DataError(f"Connect has no type for the column {name} of type {kind}. Leave the column out.")
