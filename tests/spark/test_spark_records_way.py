"""A record's way from a Kafka client to Spark, by property; the other readers are in the broker's contract tests."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from support import records_way as way
from support.brokers import running_broker
from support.examples import one_in
from support.spark_queries import source

from tidelog.log.lake import Lake


@one_in(8)
@given(codec=way.codecs, sent=st.lists(way.records, min_size=40, max_size=120))
def test_spark_reads_what_a_kafka_client_sent(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, codec: str, sent: list[way.Record]
) -> None:
    topic = "t"
    with Lake(str(tmp_path_factory.mktemp("lake"))) as lake:
        lake.create_topic(topic, way.PARTITIONS)
        with running_broker(lake) as address:
            way.send(address, topic, codec, sent)
        rows = source(spark, lake, subscribe=topic, includeHeaders="true").collect()
    found = {
        (row.partition, row.offset): way.Record(
            row.partition,
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            tuple((one.key, None if one.value is None else bytes(one.value)) for one in row.headers or ()),
            round(row.timestamp.timestamp() * 1000),
        )
        for row in rows
    }
    assert found == way.placed(sent)
    assert len(rows) == len(sent)
