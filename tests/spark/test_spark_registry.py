"""from_registry and to_registry in Spark: batch, streams, several writers, all kinds of schemas, a registry's URL."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from support.registry_servers import running_registry
from support.spark_queries import Collected, fails_with, source, stream, write

from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.lake import Lake
from tidelog.schema_registry import (
    Schema,
    SchemaRegistryClient,
    record_subject_name_strategy,
    topic_record_subject_name_strategy,
)
from tidelog.schema_registry.avro import AvroDeserializer, AvroSerializer
from tidelog.spark import from_registry, read_topic, to_registry

ON_VALUE = SerializationContext("orders", MessageField.VALUE)


def record(*fields, name="Order"):
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": [*fields]})


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": "none"}
WHO = {"type": "record", "name": "Who", "fields": [{"name": "name", "type": "string"}]}
EVERYTHING = record(
    ID,
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "counts", "type": {"type": "map", "values": "int"}},
    {
        "name": "who",
        "type": ["null", {"type": "record", "name": "Who", "fields": [{"name": "name", "type": "string"}]}],
    },
    {"name": "raw", "type": "bytes"},
    {"name": "flag", "type": "boolean"},
    {"name": "ratio", "type": "float"},
)


@pytest.fixture
def registry(lake: Lake) -> SchemaRegistryClient:
    return SchemaRegistryClient({"lake": lake})


def fill(lake: Lake, registry: SchemaRegistryClient, schema: str, *rows) -> None:
    if "orders" not in lake.topics():
        lake.create_topic("orders")
    serializer = AvroSerializer(registry, schema)
    lake.topic("orders").append(pa.table({"value": pa.array([serializer(row, ON_VALUE) for row in rows], pa.binary())}))


def test_records_of_several_writers_become_columns(spark: SparkSession, lake: Lake, registry) -> None:
    fill(lake, registry, record(ID), {"id": 1}, {"id": 2}, None)
    fill(lake, registry, record(ID, NOTE), {"id": 3, "note": "x"})
    lake.topic("orders").append(pa.table({"value": [b"no schema"]}))
    for rows in (source(spark, lake, subscribe="orders"), read_topic(spark, lake, "orders")):
        found = from_registry(rows, "value", registry=lake, subject="orders-value").orderBy("offset")
        assert found.columns == rows.columns
        wanted = [Row(id=1, note="none"), Row(id=2, note="none"), None, Row(id=3, note="x"), None]
        assert [row.value for row in found.collect()] == wanted
        old = from_registry(rows, registry=lake.uri, subject="orders-value", version=1, into="order").orderBy("offset")
        assert [row.order for row in old.collect()] == [Row(id=1), Row(id=2), None, Row(id=3), None]
        assert old.columns == [*rows.columns, "order"]


def test_fail_fast_fails_the_query(spark: SparkSession, lake: Lake, registry) -> None:
    fill(lake, registry, record(ID), {"id": 1})

    def strictly() -> DataFrame:
        records = source(spark, lake, subscribe="orders")
        return from_registry(records, registry=lake, subject="orders-value", mode="failfast")

    assert strictly().select("value.id").collect() == [Row(id=1)]
    lake.topic("orders").append(pa.table({"value": [b"no schema"]}))
    with fails_with("A value does not fit", "names no schema"):
        strictly().collect()


def test_every_type_goes_there_and_back(spark: SparkSession, lake: Lake, registry) -> None:
    row = {
        "id": 1,
        "at": datetime(2013, 7, 1, 12, 30, 0, 123456, tzinfo=UTC),
        "day": date(2013, 7, 1),
        "price": Decimal("12.50"),
        "tags": ["a", "b"],
        "counts": {"x": 1},
        "who": {"name": "Ann"},
        "raw": b"\0\xff",
        "flag": True,
        "ratio": 0.5,
    }
    fill(lake, registry, EVERYTHING, row, {**row, "id": 2, "who": None, "tags": [], "counts": {}})
    records = source(spark, lake, subscribe="orders").orderBy("offset")
    before = [row.value for row in records.collect()]
    columns = from_registry(records, registry=lake, subject="orders-value")
    first = columns.first()
    assert first is not None
    assert first.value.asDict(recursive=True) == {**row, "at": first.value.at}
    assert columns.selectExpr("unix_micros(value.at) AS at").first() == Row(at=1372681800123456)
    back = to_registry(columns, registry=lake, topic="orders")
    assert [row.value for row in back.orderBy("offset").collect()] == before


def test_a_stream_decodes_what_new_writers_bring(
    spark: SparkSession, lake: Lake, registry, tmp_path_factory: pytest.TempPathFactory
) -> None:
    checkpoint = str(tmp_path_factory.mktemp("checkpoint"))
    fill(lake, registry, record(ID, NOTE), {"id": 1, "note": "x"})
    rows = stream(spark, lake, subscribe="orders", startingOffsets="earliest")
    decoded = from_registry(rows, registry=lake, subject="orders-value").select("value.*")
    found = Collected()
    found.run(decoded, checkpoint)
    fill(
        lake,
        registry,
        record(ID, NOTE, {"name": "more", "type": "int", "default": 0}),
        {"id": 2, "note": "y", "more": 5},
    )
    found.run(decoded, checkpoint)
    assert found.rows == [Row(id=1, note="x"), Row(id=2, note="y")]


def test_rows_are_written_by_a_schema_that_is_registered(spark: SparkSession, lake: Lake, registry) -> None:
    lake.create_topic("orders")
    rows = spark.range(3).select(F.struct("id").alias("value"))
    write(to_registry(rows, registry=lake, topic="orders", schema=record(ID, NOTE)), lake, "orders")
    assert registry.get_latest_version("orders-value").schema.schema_str is not None
    reader = AvroDeserializer(registry)
    values = [v for b in lake.topic("orders").read(0) for v in b.column("value").to_pylist()]
    assert sorted(reader(v, ON_VALUE)["id"] for v in values) == [0, 1, 2]
    assert {reader(v, ON_VALUE)["note"] for v in values} == {"none"}


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [(record_subject_name_strategy, "shop.Order"), (topic_record_subject_name_strategy, "orders-shop.Order")],
)
def test_subjects_are_named_by_strategies(spark: SparkSession, lake: Lake, registry, strategy, subject: str) -> None:
    rows = spark.range(1).select(F.struct("id").alias("value"))
    to_registry(rows, registry=lake, topic="orders", schema=record(ID), strategy=strategy)
    assert registry.get_subjects() == [subject]


def test_what_can_not_be_is_refused_before_the_query_runs(spark: SparkSession, lake: Lake, registry) -> None:
    registry.register_schema("orders-value", Schema(record(ID)))
    rows = spark.range(1).select(F.struct("id", F.lit(1).alias("more")).alias("value"))
    with pytest.raises(InvalidOptionError, match="the schema has no field 'more'"):
        to_registry(rows, registry=lake, topic="orders")
    with pytest.raises(InvalidOptionError, match="must be binary"):
        from_registry(rows, registry=lake, subject="orders-value")
    with pytest.raises(InvalidOptionError, match="either subject"):
        from_registry(rows.select(F.lit(b"").alias("value")), registry=lake)
    with pytest.raises(InvalidOptionError, match="no column 'values'"):
        from_registry(rows, "values", registry=lake, subject="orders-value")


def test_a_registry_at_a_url(spark: SparkSession, lake: Lake, registry) -> None:
    fill(lake, registry, record(ID), {"id": 1})
    with running_registry(Path(lake.uri.removeprefix("file://"))) as served:
        rows = from_registry(source(spark, lake, subscribe="orders"), registry=served.url, subject="orders-value")
        assert rows.select("value.id").collect() == [Row(id=1)]
