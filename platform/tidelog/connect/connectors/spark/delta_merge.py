"""A batch of records into Delta tables, in Spark's driver: each table gets one commit that a repeat leaves out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import pyarrow as pa
from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.pandas.types import from_arrow_schema

from tidelog.connect.connectors.spark.delta_rows import (
    CONVERTED,
    DELETED,
    OFFSET,
    merged_columns,
    rows_of,
    unpacked,
    with_own_columns,
)
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.data.records import Partition
from tidelog.spark.s3a import hadoop_address

_APP_ID: Final = "spark.databricks.delta.write.txnAppId"
_VERSION: Final = "spark.databricks.delta.write.txnVersion"
_RANK: Final = "__tidelog_rank"


class DeltaTxn(NamedTuple):
    """A commit's mark: a table that has this version of an application, or a later one, leaves the commit out."""

    app_id: str
    version: int


class TableRule(NamedTuple):
    """What a connector's configuration says of its tables."""

    merges: bool
    creates: bool
    evolves: bool

    @classmethod
    def of(cls, parsed: Mapping[str, Any]) -> "TableRule":
        """The rule of a parsed configuration."""
        return cls(parsed["merge"], parsed["auto.create"], parsed["auto.evolve"])


def write_records(records: DataFrame, job_text: str, rule: TableRule, txn: DeltaTxn) -> dict[Partition, int]:
    """Write a batch of the source's records to its tables; {partition: the offset behind the last record}.

    Raises `ConnectError` for a table that is missing, or lacks columns, and must not get them.
    """
    converted = records.mapInArrow(rows_of(job_text), CONVERTED).persist()
    try:
        groups = converted.groupBy("location", "keys", "columns", "topic", "number")
        group_rows = groups.agg(F.max("next_offset").alias("next_offset")).collect()
        for location in sorted({one.location for one in group_rows if one.location}):
            of_table = [one for one in group_rows if one.location == location]
            packed = converted.where(F.col("location") == location).select("rows")
            _write_table(packed, location, of_table, rule, txn)
        return {(one.topic, one.number): one.next_offset for one in group_rows if not one.location}
    finally:
        converted.unpersist()


def _write_table(packed: DataFrame, location: str, groups: Sequence[Row], rule: TableRule, txn: DeltaTxn) -> None:
    keys = {one["keys"] for one in groups}
    if len(keys) > 1:
        raise ConnectError(f"Keys of {location} have different fields: {', '.join(sorted(keys))}. Set pk.fields.")
    columns = merged_columns([one.columns for one in groups])
    types = from_arrow_schema(with_own_columns(columns))
    rows = packed.mapInArrow(unpacked(columns.serialize().to_pybytes()), types)
    spark, address = packed.sparkSession, hadoop_address(location)
    table = _table(spark, address, columns, rule)
    if not rule.merges:
        with _marked(spark, txn):
            writer = rows.drop(DELETED, OFFSET).write.format("delta").mode("append").option("mergeSchema", "true")
            writer.save(address)
        return
    names = json.loads(next(iter(keys)))
    source = _newest(rows, names).alias("source")
    match = " AND ".join(f"target.{_quoted(name)} = source.{_quoted(name)}" for name in names) or "false"
    changed: dict[str, str | Column] = {_quoted(name): f"source.{_quoted(name)}" for name in columns.names}
    merge = table.alias("target").merge(source, match).withSchemaEvolution()
    merge = merge.whenMatchedDelete(f"source.{DELETED}").whenMatchedUpdate(f"NOT source.{DELETED}", changed)
    with _marked(spark, txn):
        merge.whenNotMatchedInsert(f"NOT source.{DELETED}", changed).execute()


def _table(spark: SparkSession, address: str, columns: pa.Schema, rule: TableRule) -> DeltaTable:
    """The table at an address, made where it is missing. Raises `ConnectError`."""
    if not DeltaTable.isDeltaTable(spark, address):
        if not rule.creates:
            raise ConnectError(f"There is no Delta table at {address}. Create it, or set auto.create=true.")
        DeltaTable.createIfNotExists(spark).location(address).addColumns(from_arrow_schema(columns)).execute()
    table = DeltaTable.forPath(spark, address)
    known = {name.lower() for name in table.toDF().columns}
    missing = [name for name in columns.names if name.lower() not in known]
    if missing and not rule.evolves:
        raise ConnectError(f"{address} has no column {missing[0]!r}. Add it, or set auto.evolve=true.")
    return table


def _newest(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """The last row of each key."""
    behind = Window.partitionBy(*(F.col(_quoted(name)) for name in names)).orderBy(F.col(OFFSET).desc())
    return rows.withColumn(_RANK, F.row_number().over(behind)).where(f"{_RANK} = 1").drop(_RANK, OFFSET)


def _quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))


@contextmanager
def _marked(spark: SparkSession, txn: DeltaTxn) -> Iterator[None]:
    """Have the next commit name a transaction version, which a repeated one is left out by."""
    spark.conf.set(_APP_ID, txn.app_id)
    spark.conf.set(_VERSION, str(txn.version))
    try:
        yield
    finally:
        spark.conf.unset(_APP_ID)
        spark.conf.unset(_VERSION)
