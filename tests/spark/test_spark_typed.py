"""Typed topics in Spark: columns by the source and by native reads, values that are derived, growth, plain SQL."""

import json
import re
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType
from support.spark_queries import Collected, fails_with, run, source, stream, write

from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.lake import Lake
from tidelog.schema_registry import SchemaRegistryClient
from tidelog.schema_registry.avro import AvroSerializer
from tidelog.spark import create_view, read_topic, stream_topic

ON_VALUE = SerializationContext("orders", MessageField.VALUE)
TYPED = {"value.columns": "avro", "value.schema.subject": "orders-value"}
ID = {"name": "id", "type": "long"}
ITEM = {"name": "item", "type": "string"}
NOTE = {"name": "note", "type": "string", "default": "none"}
V1, V2 = [ID, ITEM], [ID, ITEM, NOTE]
FIRST = StructType([StructField("id", LongType()), StructField("item", StringType())])
GROWN = StructType([*FIRST.fields, StructField("note", StringType())])


def create(lake: Lake, **config: str) -> None:
    lake.create_topic("orders", config={**TYPED, **{key.replace("_", "."): value for key, value in config.items()}})


def fill(lake: Lake, fields: list[dict[str, Any]], *rows: Any) -> list[bytes | None]:
    """Append values under a schema; their bytes."""
    schema = json.dumps({"type": "record", "name": "Order", "fields": fields})
    with SchemaRegistryClient({"lake": lake}) as registry:
        serializer = AvroSerializer(registry, schema)
        values = [row if isinstance(row, bytes) else serializer(row, ON_VALUE) for row in rows]
    lake.topic("orders").append(pa.table({"value": pa.array(values, pa.binary())}))
    return values


def order(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "item": f"item {number}", **more}


def by_offset(rows: DataFrame, *columns: str) -> list[Row]:
    return rows.orderBy("offset").select(*columns).collect()


def plan_of(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())


@pytest.mark.parametrize("stored", ["keep", "derive"])
def test_both_reads_give_columns_and_the_exact_values(spark: SparkSession, lake: Lake, stored: str) -> None:
    create(lake, value_bytes=stored)
    values = fill(lake, V1, order(1), None, b"no schema", order(2))
    values += fill(lake, V2, order(3, note="x"))
    for rows in (
        source(spark, lake, subscribe="orders", columns="true"),
        read_topic(spark, lake, "orders", columns=True),
    ):
        assert rows.schema["columns"].dataType == GROWN
        found = by_offset(rows, "value", "columns")
        assert [row.value for row in found] == values
        wanted = [Row(1, "item 1", "none"), None, None, Row(2, "item 2", "none"), Row(3, "item 3", "x")]
        assert [None if row.columns is None else Row(*row.columns) for row in found] == wanted
    for plain in (source(spark, lake, subscribe="orders"), read_topic(spark, lake, "orders")):
        assert "columns" not in plain.columns
        assert [row.value for row in by_offset(plain, "value")] == values


def test_sql_reads_the_fields_that_it_names_and_no_values(spark: SparkSession, lake: Lake) -> None:
    create(lake, value_bytes="derive")
    fill(lake, V1, *(order(n) for n in range(10)))
    fill(lake, V2, *(order(n, note="x") for n in range(10, 20)))
    create_view(spark, lake, "orders", "typed", columns=True)
    found = spark.sql("SELECT sum(columns.id) AS ids FROM typed WHERE columns.id >= 15")
    assert found.collect() == [Row(ids=sum(range(15, 20)))]
    plan = plan_of(found)
    assert re.search(r"ReadSchema: struct<[^>]*columns:struct<id:bigint>", plan)
    assert "GreaterThanOrEqual(columns.id,15)" in plan
    assert "value" not in re.findall(r"ReadSchema: (.*)", plan)[0]
    assert "ArrowEvalPython" not in plan
    noted = spark.sql("SELECT columns.note AS note, count(*) AS n FROM typed GROUP BY 1 ORDER BY 1")
    assert noted.collect() == [Row(note="none", n=10), Row(note="x", n=10)]
    assert "columns:struct<note:string>" in plan_of(noted)
    assert "ArrowEvalPython" in plan_of(spark.sql("SELECT value FROM typed"))


def test_fields_within_records_have_the_newest_default(spark: SparkSession, lake: Lake) -> None:
    """Those of structs, of lists and of maps, by both reads; a filter on another field is pushed down as before."""
    create(lake)

    def fields(*more: dict[str, Any]) -> list[dict[str, Any]]:
        inner = {"type": "record", "name": "In", "fields": [{"name": "n", "type": "int"}, *more]}
        return [
            ID,
            {"name": "one", "type": ["null", inner], "default": None},
            {"name": "many", "type": {"type": "array", "items": "In"}},
            {"name": "by", "type": {"type": "map", "values": "In"}},
        ]

    fill(lake, fields(), {"id": 1, "one": {"n": 1}, "many": [{"n": 2}], "by": {"k": {"n": 3}}},
         {"id": 2, "one": None, "many": [], "by": {}})  # fmt: skip
    said = {"n": 4, "note": "x"}
    fill(lake, fields(NOTE), {"id": 3, "one": said, "many": [said], "by": {"k": said}})
    wanted = [
        (1, Row(1, "none"), [Row(2, "none")], {"k": Row(3, "none")}),
        (2, None, [], {}),
        (3, Row(4, "x"), [Row(4, "x")], {"k": Row(4, "x")}),
    ]
    native = read_topic(spark, lake, "orders", columns=True)
    for rows in (native, source(spark, lake, subscribe="orders", columns="true")):
        assert [tuple(row) for row in by_offset(rows, "columns.*")] == wanted
    noted = native.where("columns.id >= 2").select("columns.one.note")
    assert "GreaterThanOrEqual(columns.id,2)" in plan_of(noted)
    assert "columns:struct<id:bigint,one:struct<note:string>>" in plan_of(noted)


def test_values_that_were_never_derived_are_read_without_python(spark: SparkSession, lake: Lake) -> None:
    create(lake)
    fill(lake, V1, order(1))
    assert "Python" not in plan_of(read_topic(spark, lake, "orders").select("value"))


def test_a_view_from_before_values_were_derived_takes_none_for_a_tombstone(spark: SparkSession, lake: Lake) -> None:
    create(lake)
    create_view(spark, lake, "orders", "without_columns")
    kept = fill(lake, V1, order(1))
    create_view(spark, lake, "orders", "kept")
    assert [row.value for row in by_offset(spark.table("kept"), "value")] == kept
    lake.alter_topic("orders", config={"value.bytes": "derive"})
    fill(lake, V1, order(2))
    for view in ("without_columns", "kept"):
        with fails_with("values that are derived of their columns", "Make it again"):
            spark.sql(f"SELECT value FROM {view}").collect()
        assert spark.sql(f"SELECT offset FROM {view}").count() == 2


def test_an_earlier_state_has_the_columns_of_its_time(spark: SparkSession, lake: Lake) -> None:
    create(lake, value_bytes="derive")
    values = fill(lake, V1, order(1))
    version = lake.topic("orders").state().version
    fill(lake, V2, order(2, note="x"))
    then = read_topic(spark, lake, "orders", version=version, columns=True)
    assert then.schema["columns"].dataType == FIRST
    assert [(row.value, *row.columns) for row in then.collect()] == [(values[0], 1, "item 1")]
    with pytest.raises(InvalidOptionError, match="has no columns"):
        read_topic(spark, lake, "orders", version=0, columns=True)


def test_a_stream_of_the_source_goes_on_when_the_columns_grow(
    spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory
) -> None:
    checkpoint = str(tmp_path_factory.mktemp("checkpoint"))
    create(lake, value_bytes="derive")
    first = fill(lake, V1, order(1))
    options = {"subscribe": "orders", "startingOffsets": "earliest", "columns": "true"}
    rows = stream(spark, lake, **options)
    found = Collected()
    found.run(rows, checkpoint)
    second = fill(lake, V2, order(2, note="x"))
    found.run(rows, checkpoint)
    assert [row.columns for row in found.rows] == [Row(id=1, item="item 1"), Row(id=2, item="item 2")]
    assert [row.value for row in found.rows] == [*first, *second]
    found = Collected()
    fill(lake, V2, order(3, note="y"))
    found.run(stream(spark, lake, **options), checkpoint)
    assert [row.columns for row in found.rows] == [Row(id=3, item="item 3", note="y")]


def test_a_native_stream_ends_once_when_the_columns_grow(
    spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory
) -> None:
    checkpoint = str(tmp_path_factory.mktemp("checkpoint"))
    create(lake, value_bytes="derive")
    values = fill(lake, V1, order(1))
    found = Collected()
    rows = stream_topic(spark, lake, "orders", columns=True)
    found.run(rows, checkpoint)
    values += fill(lake, V2, order(2, note="x"))
    with pytest.raises(StreamingQueryException, match=r"DELTA_SCHEMA_CHANGED|columns have grown by schema 2"):
        found.run(rows, checkpoint)
    found.run(stream_topic(spark, lake, "orders", columns=True), checkpoint)
    assert [row.value for row in found.rows] == values
    assert [row.columns.id for row in found.rows] == [1, 2]


def test_a_topic_without_columns_is_refused(spark: SparkSession, lake: Lake) -> None:
    lake.create_topic("plain")
    create(lake)
    for topic in ("plain", "orders"):
        with pytest.raises(InvalidOptionError, match=f"Topic '{topic}' has no columns"):
            read_topic(spark, lake, topic, columns=True)
        with fails_with(f"Topic '{topic}' has no columns"):
            source(spark, lake, subscribe=topic, columns="true").collect()


def test_topics_with_columns_of_one_name_and_other_types_are_refused(spark: SparkSession, lake: Lake) -> None:
    create(lake)
    fill(lake, V1, order(1))
    text = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]})
    lake.create_topic("others", config={"value.columns": "avro", "value.schema": text})
    with fails_with("topic 'others' don't go with", "'id'"):
        source(spark, lake, subscribe="orders,others", columns="true").collect()


def test_the_sink_takes_columns_in_place_of_values(
    spark: SparkSession, lake: Lake, tmp_path_factory: pytest.TempPathFactory
) -> None:
    create(lake, value_bytes="derive")
    values = fill(lake, V2, order(1, note="x"))
    rows = spark.sql("SELECT named_struct('id', 2L, 'item', 'item 2', 'note', 'y') AS columns")
    write(rows, lake, "orders")
    fewer = stream(spark, lake, subscribe="orders", startingOffsets="earliest", columns="true")
    run(fewer.selectExpr("named_struct('id', columns.id + 10, 'item', columns.item) AS columns"), lake, "orders",
        str(tmp_path_factory.mktemp("checkpoint")))  # fmt: skip
    found = by_offset(read_topic(spark, lake, "orders", columns=True), "columns.*")
    assert sorted(map(tuple, found)) == [
        (1, "item 1", "x"),
        (2, "item 2", "y"),
        (11, "item 1", "none"),
        (12, "item 2", "none"),
    ]
    written = [value for batch in lake.topic("orders").read(0) for value in batch.column("value").to_pylist()]
    assert written[0] == values[0]
    assert all(value[:5] == values[0][:5] for value in written)  # type: ignore[index]


def test_the_sink_names_the_rows_that_the_topic_refuses(spark: SparkSession, lake: Lake) -> None:
    create(lake, topic_validate="true")
    values = fill(lake, V1, order(1))
    rows = spark.createDataFrame([(bytearray(values[0] or b""),), (bytearray(b"no schema"),)], "value binary")
    with fails_with("Topic 'orders' takes values of its schema only", "it names no schema"):
        write(rows.coalesce(1), lake, "orders")
    assert lake.offsets("orders") == {0: (0, 1)}
