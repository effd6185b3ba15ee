"""from_registry and to_registry with schemas of each kind, by ids and by guids in headers, also in Kafka's frames."""

import json
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from support.protobuf_messages import message_of
from support.spark_queries import fails_with, source, write

from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.delta.schema import HEADERS
from tidelog.log.lake import Lake
from tidelog.schema_registry import (
    Schema,
    SchemaRegistryClient,
    header_schema_id_serializer,
    prefix_schema_id_serializer,
)
from tidelog.schema_registry.avro import AvroDeserializer, AvroSerializer
from tidelog.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from tidelog.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from tidelog.spark import from_registry, read_topic, to_registry

KINDS = ("AVRO", "JSON", "PROTOBUF")
FORMS = {"ids": prefix_schema_id_serializer, "guids": header_schema_id_serializer}
AVRO = json.dumps({"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"},
    {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    {"name": "who", "type": ["null", {"type": "record", "name": "Who", "fields": [{"name": "name", "type": "string"}]}],
     "default": None},
]})  # fmt: skip
JSON = json.dumps({"title": "Order", "type": "object", "required": ["id"], "properties": {
    "id": {"type": "integer"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "who": {"type": "object", "properties": {"name": {"type": "string"}}},
}})  # fmt: skip
PROTO = """syntax = "proto3";
message Order { int64 id = 1; repeated string tags = 2; Who who = 3; message Who { string name = 1; } }"""
TEXTS = {"AVRO": AVRO, "JSON": JSON, "PROTOBUF": PROTO}
ROWS: tuple[dict[str, Any], ...] = (
    {"id": 1, "tags": ["a", "b"], "who": {"name": "Ann"}},
    {"id": 2, "tags": ["c"], "who": {"name": "Bob"}},
)
WANTED = [Row(id=one["id"], tags=one["tags"], who=Row(**one["who"])) for one in ROWS]


@pytest.fixture
def registry(lake: Lake) -> SchemaRegistryClient:
    return SchemaRegistryClient({"lake": lake})


def context(headers: list[tuple[str, bytes]] | None = None) -> SerializationContext:
    return SerializationContext("orders", MessageField.VALUE, headers)


def serializer(kind: str, registry: SchemaRegistryClient, form: str) -> Any:
    conf = {"schema.id.serializer": FORMS[form]}
    if kind == "PROTOBUF":
        message = message_of(PROTO, "Order")
        write_message = ProtobufSerializer(message, registry, conf)
        return lambda row, where: write_message(message(**row), where)
    made = {"AVRO": AvroSerializer, "JSON": JSONSerializer}[kind]
    return made(registry, TEXTS[kind], conf=conf) if kind == "AVRO" else made(TEXTS[kind], registry, conf=conf)


def fill(lake: Lake, registry: SchemaRegistryClient, kind: str, form: str) -> None:
    """The rows and a tombstone as a serializer writes them, and a value of no schema."""
    lake.create_topic("orders")
    write_row, values, headers = serializer(kind, registry, form), [], []
    for row in ROWS:
        given: list[tuple[str, bytes]] = [("trace", b"1")]
        values.append(write_row(row, context(given)))
        headers.append([{"key": key, "value": value} for key, value in given])
    values += [None, b"no schema"]
    headers += [None, [{"key": "trace", "value": b"2"}]]
    table = pa.table({"value": pa.array(values, pa.binary()), "headers": pa.array(headers, HEADERS)})
    lake.topic("orders").append(table)


def kafkas_frame(spark: SparkSession, records: DataFrame) -> DataFrame:
    """The same records in a frame as Spark's Kafka source gives with its option includeHeaders."""
    kafkas = (
        "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT,"
        " headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
    )
    return spark.createDataFrame(records.collect(), kafkas)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_values_of_each_kind_and_form_become_columns(
    spark: SparkSession, lake: Lake, registry: SchemaRegistryClient, kind: str, form: str
) -> None:
    fill(lake, registry, kind, form)
    headers = "headers" if form == "guids" else None
    records = source(spark, lake, subscribe="orders", includeHeaders="true")
    for rows in (records, read_topic(spark, lake, "orders"), kafkas_frame(spark, records)):
        found = from_registry(rows, registry=lake, subject="orders-value", headers=headers).orderBy("offset")
        assert [row.value for row in found.collect()] == [*WANTED, None, None]
        strict = from_registry(rows.where("offset < 3"), registry=lake, subject="orders-value", mode="FAILFAST",
                               headers=headers, into="order")  # fmt: skip
        assert [row.order for row in strict.orderBy("offset").select("order").collect()] == [*WANTED, None]
    if form == "guids":  # which the function reads only on request
        unread = from_registry(source(spark, lake, subscribe="orders"), registry=lake, subject="orders-value")
        assert [row.value for row in unread.collect()] == [None] * 4


def test_keys_are_named_by_headers_of_their_own(
    spark: SparkSession, lake: Lake, registry: SchemaRegistryClient
) -> None:
    lake.create_topic("orders")
    conf = {"schema.id.serializer": header_schema_id_serializer}
    given: list[tuple[str, bytes]] = []
    key = AvroSerializer(registry, AVRO, conf=conf)(
        {**ROWS[0]}, SerializationContext("orders", MessageField.KEY, given)
    )
    headers = [[{"key": name, "value": value} for name, value in given]]
    table = pa.table({"key": [key], "value": [b"v"], "headers": pa.array(headers, HEADERS)})
    lake.topic("orders").append(table)
    records = source(spark, lake, subscribe="orders", includeHeaders="true")
    found = from_registry(records, "key", registry=lake, subject="orders-key", headers="headers")
    assert [row.key for row in found.collect()] == WANTED[:1]


def reader(kind: str, registry: SchemaRegistryClient) -> Any:
    if kind == "PROTOBUF":
        read = ProtobufDeserializer(message_of(PROTO, "Order"), None, registry)
        return lambda value: {
            "id": (one := read(value, context())).id, "tags": [*one.tags], "who": {"name": one.who.name}
        }  # fmt: skip
    read_value = AvroDeserializer(registry) if kind == "AVRO" else JSONDeserializer(JSON, None, registry)
    return lambda value: read_value(value, context())


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_written_under_each_kind(
    spark: SparkSession, lake: Lake, registry: SchemaRegistryClient, kind: str
) -> None:
    lake.create_topic("orders")
    struct = "value STRUCT<id: BIGINT, tags: ARRAY<STRING>, who: STRUCT<name: STRING>>"
    frame = spark.createDataFrame([(one,) for one in WANTED], struct)
    made = to_registry(frame.coalesce(1), registry=lake, topic="orders", schema=TEXTS[kind], schema_type=kind)
    write(made, lake, "orders")
    values = [value for batch in lake.topic("orders").read(0) for value in batch.column("value").to_pylist()]
    read = reader(kind, registry)
    assert sorted((read(value) for value in values), key=lambda one: one["id"]) == [*ROWS]
    assert registry.get_latest_version("orders-value").schema.schema_type == kind


@pytest.mark.parametrize("kind", ["AVRO", "JSON"])
def test_rows_that_a_schema_has_no_value_for_fail_the_query(
    spark: SparkSession, lake: Lake, registry: SchemaRegistryClient, kind: str
) -> None:
    registry.register_schema("orders-value", Schema(TEXTS[kind], kind))
    rows = spark.sql("SELECT struct(CAST(null AS BIGINT) AS id) AS value")
    with fails_with("id"):
        to_registry(rows, registry=lake, topic="orders").collect()
    with pytest.raises(InvalidOptionError, match="'id'"):
        to_registry(rows.select(F.struct(F.lit("x").alias("id")).alias("value")), registry=lake, topic="orders")
