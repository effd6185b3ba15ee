"""`from_registry` and `to_registry`: a DataFrame's bytes as columns by a registry's schemas, and back."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import BinaryType, DataType, StructType

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.shallow_errors import shallow
from tidelog.log.lake import Lake
from tidelog.schemas.base.value_schemas import ValueSchema
from tidelog.spark.fitting import why_unwritable
from tidelog.spark.registry_columns import ColumnDecoder, ColumnEncoder
from tidelog.spark.registry_reading import RegistryAddress, known_registry, reader_schema, record_name, writer_schema
from tidelog.spark.typed_rows import on_arrow

# The modes of Spark's from_avro.
_MODES: Final = ("PERMISSIVE", "FAILFAST")

Registry = str | Mapping[str, Any] | Lake


@shallow
def from_registry(
    records: DataFrame,
    column: str = "value",
    *,
    registry: Registry,
    subject: str | None = None,
    version: int | str = "latest",
    schema: str | None = None,
    schema_type: str = "AVRO",
    mode: str = "PERMISSIVE",
    headers: str | None = None,
    into: str | None = None,
) -> DataFrame:
    """The DataFrame with a column of bytes as a struct: of `read_topic`, `format("tidelog")`, `format("kafka")`.

    Each value is decoded by the schema whose id it begins with (Confluent's wire format), whatever ids a batch has, and
    read as the reader's schema says: the newest of `subject`, its `version`, or the text `schema` of `schema_type`
    (AVRO, JSON, PROTOBUF). What a writer's schema lacks has the reader's default. `registry`: a lake's address, an
    opened lake, a registry's URL, or a `SchemaRegistryClient`'s configuration; workers ask it once for each id.
    `mode`: a value that doesn't fit is null ("PERMISSIVE"), or fails the query ("FAILFAST"), as in Spark's `from_avro`.
    `headers`: the column of headers, whose `__value_schema_id` (`__key_schema_id` for a column `key`) counts before the
    value's own. `into`: the struct's column, where the bytes stay; else it takes their place. The struct is that of the
    schema when this is called. Raises `InvalidOptionError`, `SchemaError`, `SchemaRegistryError`.
    """
    if mode.upper() not in _MODES:
        raise InvalidOptionError(f"mode is '{mode}': take PERMISSIVE or FAILFAST.")
    _require_type(records, column, BinaryType())
    address = RegistryAddress.of(registry)
    reader = reader_schema(address, subject, version, schema, schema_type)
    if reader.columns is None:
        why = "; ".join(f"{path or 'the schema'}: {why}" for path, why in reader.left_out.items())
        raise InvalidOptionError(f"The schema has no field that can be a column: {why}.")
    decode = _decoding(address, reader, fail_fast=mode.upper() == "FAILFAST")
    arguments = [F.col(f"`{column}`")]
    if headers is not None:
        arguments.append(_named_by(headers, "key" if column == "key" else "value"))
    return records.withColumn(into or column, on_arrow(decode, from_arrow_type(reader.columns), *arguments))


def _decoding(address: RegistryAddress, reader: ValueSchema, *, fail_fast: bool) -> Callable[..., pa.Array]:
    made: list[ColumnDecoder] = []

    def decode(values: pa.Array, guids: pa.Array = None) -> pa.Array:
        if not made:
            made.append(ColumnDecoder(reader, known_registry(address).writer, fail_fast=fail_fast))
        return made[0](values, guids)

    return decode


def _named_by(headers: str, field: str) -> Column:
    """The last header of a record that names a schema by its guid."""
    name = f"__{field}_schema_id"
    named = F.filter(F.col(f"`{headers}`"), lambda one: one["key"] == F.lit(name))
    return F.try_element_at(named, F.lit(-1))["value"]


@shallow
def to_registry(
    rows: DataFrame,
    column: str = "value",
    *,
    registry: Registry,
    subject: str | None = None,
    topic: str | None = None,
    strategy: Callable[..., str] | None = None,
    version: int | str = "latest",
    schema: str | None = None,
    schema_type: str = "AVRO",
    register: bool = True,
    normalize: bool = False,
    into: str | None = None,
) -> DataFrame:
    """The DataFrame with a column of structs as bytes under a registry's schema, each behind the schema's id.

    The schema: of `subject` the newest or its `version`; or the text `schema`, which is registered in the subject, with
    `register=False` looked up there. Without `subject` it is that of `topic`: `strategy` as in
    `tidelog.schema_registry`, `topic_subject_name_strategy` unless given. Fields are matched by their names; one that
    the column lacks has the schema's default, one that the schema lacks is refused. A null struct is a null value.
    `into`: the bytes' column, where the structs stay. Raises `InvalidOptionError`, `SchemaError`,
    `SchemaRegistryError`; a row that the schema can't write fails the query.
    """
    given = _type_of(rows, column)
    if not isinstance(given, StructType):
        raise InvalidOptionError(f"Column '{column}' is {given.simpleString()}: give a struct of the schema's fields.")
    address = RegistryAddress.of(registry)
    value_schema, number = writer_schema(
        known_registry(address).client,
        _subject(subject, topic, strategy, schema, schema_type, "key" if column == "key" else "value"),
        version,
        schema,
        schema_type,
        register=register,
        normalize=normalize,
    )
    why = why_unwritable(to_arrow_type(given, timezone="UTC"), value_schema)
    if why is not None:
        raise InvalidOptionError(f"Column '{column}' can't be written: {why}.")
    encode = _encoding(value_schema, number)
    return rows.withColumn(into or column, on_arrow(encode, BinaryType(), F.col(f"`{column}`")))


def _encoding(schema: ValueSchema, number: int) -> Callable[..., pa.Array]:
    encoder = ColumnEncoder(schema, number)

    def encode(columns: pa.Array) -> pa.Array:
        return encoder(columns)

    return encode


def _subject(
    subject: str | None,
    topic: str | None,
    strategy: Callable[..., str] | None,
    schema: str | None,
    schema_type: str,
    field: str,
) -> str:
    from tidelog.clients.schema_registry.strategies import topic_subject_name_strategy
    from tidelog.clients.values.serialization import MessageField, SerializationContext

    if (subject is None) == (topic is None):
        raise InvalidOptionError("Give either subject or topic, whose subject has the schema.")
    if subject is not None:
        return subject
    chosen = strategy or topic_subject_name_strategy
    return chosen(SerializationContext(str(topic), MessageField(field)), record_name(schema, schema_type))


def _require_type(rows: DataFrame, column: str, wanted: DataType) -> None:
    given = _type_of(rows, column)
    if given != wanted:
        raise InvalidOptionError(f"Column '{column}' is {given.simpleString()}, and must be {wanted.simpleString()}.")


def _type_of(rows: DataFrame, column: str) -> DataType:
    if column not in rows.columns:
        raise InvalidOptionError(f"There is no column '{column}'; there are {', '.join(rows.columns)}.")
    return rows.schema[column].dataType
