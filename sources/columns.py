"""The source's columns as Spark's types: those of Spark's Kafka source, and the struct of a typed topic's values."""

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidelog.log.delta import schema

RECORDS = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
RECORDS_WITH_HEADERS = StructType(
    [
        *RECORDS.fields,
        StructField(
            "headers", ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
        ),
    ]
)


def with_columns(records: StructType, columns: pa.StructType) -> StructType:
    """The source's columns and, last, `columns`."""
    return StructType([*records.fields, StructField(schema.COLUMNS, from_arrow_type(columns))])


def columns_of(records: StructType) -> pa.StructType | None:
    """The Arrow type of `columns`, as Spark has it; None for a query without."""
    if schema.COLUMNS not in records.names:
        return None
    return to_arrow_type(records[schema.COLUMNS].dataType, timezone="UTC")
