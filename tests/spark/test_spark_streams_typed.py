"""Streams of typed values: by a registry's schemas, and by the columns of typed topics."""

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession
from support.spark_queries import fails_with

from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.lake import Lake
from tidelog.schema_registry import Schema, SchemaRegistryClient
from tidelog.schema_registry.avro import AvroDeserializer, AvroSerializer
from tidelog.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from tidelog.streams import Streams, StreamsBuilder, TopologyTestDriver, serdes

ID = {"name": "id", "type": "long"}
ORDER = json.dumps({"type": "record", "name": "Order", "fields": [ID, {"name": "item", "type": "string"}]})
TOTAL = json.dumps({"type": "record", "name": "Total", "fields": [ID, {"name": "orders", "type": "long"}]})
ORDER_JSON = json.dumps(
    {
        "title": "Order",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "item": {"type": "string"}},
        "required": ["id", "item"],
        "additionalProperties": False,
    }
)
TYPED = {"value.columns": "avro"}


def on_value(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


@pytest.fixture
def registry(lake: Lake) -> SchemaRegistryClient:
    return SchemaRegistryClient({"lake": lake})


def test_values_by_a_registry_are_read_and_written(
    spark: SparkSession, lake: Lake, registry: SchemaRegistryClient
) -> None:
    """Counts of Avro values, as Avro of another schema, which any client of the registry reads."""
    write = AvroSerializer(registry, ORDER)
    orders = [
        write({"id": number, "item": item}, on_value("orders")) for number, item in ((1, "a"), (2, "b"), (1, "c"))
    ]
    registry.register_schema("totals-value", Schema(TOTAL))
    builder = StreamsBuilder()
    stream = builder.stream("orders", value=serdes.avro(lake.uri, "orders-value")).filter("value.item != 'b'")
    counts = stream.group_by("value.id").count().to_stream()
    counts.map_values("struct(key AS id, value AS orders)").to("totals", value=serdes.avro(lake.uri))

    with TopologyTestDriver(builder.build(), spark=spark) as driver:
        records = driver.create_input_topic("orders", value=serdes.BYTES)
        records.pipe_key_values([("x", order) for order in orders])
        records.pipe_input("x", None)
        totals = driver.create_output_topic("totals", serdes.LONG, serdes.BYTES)
        ((key, value),) = totals.read_key_values_to_list()
        records.pipe_input("x", b"no schema")
        with fails_with("no schema"):
            totals.read_key_values_to_list()

    assert key == 1
    assert AvroDeserializer(registry)(value, on_value("totals")) == {"id": 1, "orders": 2}


def test_values_by_a_json_schema_are_read_and_written(
    spark: SparkSession, lake: Lake, registry: SchemaRegistryClient
) -> None:
    value = JSONSerializer(ORDER_JSON, registry)({"id": 7, "item": "a"}, on_value("orders"))
    serde = serdes.avro(lake.uri, "orders-value", schema_type="JSON")
    builder = StreamsBuilder()
    stream = builder.stream("orders", value=serde)
    stream.map_values("struct(value.id + 1 AS id, upper(value.item) AS item)").to("louder", value=serde)

    with TopologyTestDriver(builder.build(), spark=spark) as driver:
        driver.create_input_topic("orders", value=serdes.BYTES).pipe_input("x", value)
        _, found = driver.create_output_topic("louder", value=serdes.BYTES).read_key_value()

    assert JSONDeserializer(ORDER_JSON, schema_registry_client=registry)(found, on_value("louder")) == {
        "id": 8,
        "item": "A",
    }


@pytest.mark.parametrize("driven", [True, False])
def test_typed_topics_give_and_take_columns(
    spark: SparkSession, lake: Lake, registry: SchemaRegistryClient, driven: bool
) -> None:
    for topic in ("orders", "large"):
        registry.register_schema(f"{topic}-value", Schema(ORDER))
        lake.create_topic(topic, config={**TYPED, "value.schema.subject": f"{topic}-value"})
    write = AvroSerializer(registry, ORDER)
    rows = [{"key": str(n), "value": write({"id": n, "item": f"i{n}"}, on_value("orders"))} for n in range(4)]
    lake.topic("orders").append(rows)
    builder = StreamsBuilder()
    stream = builder.stream("orders", value=serdes.TYPED).filter("value.id > 1")
    stream.map_values("named_struct('id', value.id * 10, 'item', value.item)").to("large", value=serdes.TYPED)
    config: dict[str, Any] = {"application.id": "app", "lake": lake}

    if driven:
        with TopologyTestDriver(builder.build(), config, spark) as driver:
            driver.advance()
    else:
        with Streams(builder.build(), config, spark) as streams:
            streams.process_all_available()

    (found,) = list(lake.topic("large").read(0))
    read = AvroDeserializer(registry)
    values = [read(value, on_value("large")) for value in found.column("value").to_pylist()]
    assert values == [{"id": 20, "item": "i2"}, {"id": 30, "item": "i3"}]
    assert found.column("key").to_pylist() == [b"2", b"3"]


def test_serdes_of_a_registry_have_no_single_values(spark: SparkSession, lake: Lake) -> None:
    serde = serdes.avro(lake.uri, "orders-value", schema=ORDER)
    builder = StreamsBuilder()
    builder.stream("orders", value=serde).to("same", value=serde)
    with (
        TopologyTestDriver(builder.build(), spark=spark) as driver,
        pytest.raises(InvalidOptionError, match=r"give the test driver bytes, by serdes\.BYTES"),
    ):
        driver.create_input_topic("orders", value=serde).pipe_input("x", {"id": 1, "item": "a"})
