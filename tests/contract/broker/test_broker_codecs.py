"""Batches of real clients: what librdkafka and aiokafka pack, in every codec, is in the lake as it was sent."""

import asyncio

import pyarrow as pa
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from support.brokers import running_broker

from tidelog.log.lake import Lake

FIRST_MS = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
HEADERS = [("trace", b"1"), ("trace", None), ("", b"")]
# (key, value, headers): nulls, repeated headers, a record of 100 kB, and many alike.
RECORDS = [
    (None, b"no key", []),
    (b"no value", None, []),
    (b"", b"", HEADERS),
    (b"large", b"0123456789" * 10_000, []),
    *((b"k%d" % n, b"value %d" % n, HEADERS if n % 10 == 0 else []) for n in range(500)),
]


def by_librdkafka(address, codec):
    producer = Producer({"bootstrap.servers": address, "compression.type": codec, "linger.ms": 20})
    errors = []
    for n, (key, value, headers) in enumerate(RECORDS):
        producer.produce(
            "flights",
            key=key,
            value=value,
            headers=headers,
            timestamp=FIRST_MS + n,
            on_delivery=lambda error, _: errors.append(error),
        )
    assert producer.flush(30) == 0
    assert errors == [None] * len(RECORDS)


def by_aiokafka(address, codec):
    async def produce():
        packing = None if codec == "none" else codec
        async with AIOKafkaProducer(bootstrap_servers=address, compression_type=packing, linger_ms=20) as producer:
            sent = [
                await producer.send("flights", value, key, headers=headers, timestamp_ms=FIRST_MS + n)
                for n, (key, value, headers) in enumerate(RECORDS)
            ]
            await asyncio.gather(*sent)

    asyncio.run(produce())


def consumed(address):
    """All records as librdkafka reads them: (key, value, headers, timestamp), in the order of their offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "none",
            "enable.auto.commit": False,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition("flights", 0, 0)])
    found = []
    try:
        while len(found) < len(RECORDS):
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None
            assert message.offset() == len(found)
            found.append((message.key(), message.value(), message.headers() or [], message.timestamp()[1]))
    finally:
        consumer.close()
    return found


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("produce", [by_librdkafka, by_aiokafka])
def test_what_clients_pack_is_read_alike_in_the_lake_and_by_consumers(tmp_path, codec, produce):
    """From memory as it was packed, from segments packed again by another broker, and from the lake."""
    sent = [(*record, FIRST_MS + n) for n, record in enumerate(RECORDS)]
    with Lake(str(tmp_path)) as lake:
        lake.create_topic("flights", partitions=1)
        with running_broker(lake) as address:
            produce(address, codec)
            assert consumed(address) == sent
        with running_broker(lake) as address:
            assert consumed(address) == sent
        table = lake.topic("flights").to_arrow(0, include_headers=True)
    headers = [[(h["key"], h["value"]) for h in row or ()] for row in table["headers"].to_pylist()]
    times = [micros // 1000 for micros in table["timestamp"].cast(pa.int64()).to_pylist()]
    assert list(zip(table["key"].to_pylist(), table["value"].to_pylist(), headers, times, strict=True)) == sent
