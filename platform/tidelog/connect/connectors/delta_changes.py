"""What the Delta sinks share: their keys, and rows to merge of records, as rules without a table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from tidelog.connect.config.definition import ConfigDef, Importance
from tidelog.connect.config.values import FILLED, FLAG, TEXTS
from tidelog.connect.connectors.arrow_values import arrow_schema, arrow_type
from tidelog.connect.data.errors import ConnectError, DataError
from tidelog.connect.data.records import SinkRecord
from tidelog.connect.data.schema import ConnectSchema, SchemaType
from tidelog.log.base.keys import REQUIRED
from tidelog.log.config.key_type import int_of, long_of

# Delta's whole numbers, by their names in a table's schema, and what SQL calls them.
_BITS: Final[Mapping[str, tuple[int, str]]] = {
    "byte": (8, "tinyint"), "short": (16, "smallint"), "integer": (32, "int"), "long": (64, "bigint"),
}  # fmt: skip


def table_keys() -> ConfigDef:
    """The keys of a sink's tables."""
    return (
        ConfigDef()
        .define("table.location", FILLED, REQUIRED, Importance.HIGH,
                "The table's folder or address (s3://…); ${topic} stands for the topic.")
        .define("pk.fields", TEXTS, [], Importance.HIGH,
                "The columns of the key: fields of a struct key, or a name for one that is no struct; all "
                "fields when empty.")
        .define("merge", FLAG, True, Importance.HIGH,
                "Whether records change the row of their key, and null values delete it; otherwise every record is "
                "a row.")
        .define("auto.create", FLAG, True, Importance.MEDIUM, "Whether a missing table is created.")
        .define("auto.evolve", FLAG, True, Importance.MEDIUM, "Whether missing columns are added.")
    )  # fmt: skip


DELTA_KEYS: Final = (
    table_keys()
    .define("flush.size", int_of(1), 10_000, Importance.MEDIUM, "How many records a commit has at most.")
    .define("rotate.interval.ms", long_of(0), 5_000, Importance.MEDIUM,
            "How long after its first record a commit is made although it is not full.")
    .define("storage.options", TEXTS, [], Importance.MEDIUM,
            "Options of the object store as name=value, by deltalake's names.")
)  # fmt: skip


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


def check_growth(location: str, types: Mapping[str, str], changes: Sequence[KeyedChange]) -> None:
    """Raise `ConnectError` for a whole number that does not fit its column. `types`: Delta's, by the columns' names.

    deltalake can neither change a column's type nor write to a table whose columns were widened (`typeWidening`).
    """
    for name, kind in types.items():
        if kind not in _BITS:
            continue
        bits, sql_type = _BITS[kind]
        half = 1 << (bits - 1)
        for change in changes:
            value = (change.values or change.key).get(name)
            if isinstance(value, int) and not -half <= value < half:
                raise ConnectError(
                    f"Column {name} of the table {location} is {sql_type}, and the records have {value}: their type has"
                    f" grown to {_fitting(value)}. DeltaSink can't widen a column. Either rewrite the table once with"
                    f" Spark (df = spark.read.format('delta').load('{location}'); df.withColumn('{name}',"
                    f" df['{name}'].cast('bigint')).write.format('delta').mode('overwrite')"
                    f".option('overwriteSchema', 'true').save('{location}')), or use SparkDeltaSink with the table's"
                    " property delta.enableTypeWidening=true. Then restart the task."
                )


def _fitting(value: int) -> str:
    return next((known for bits, known in _BITS.values() if -(1 << bits - 1) <= value < 1 << bits - 1), "decimal")
