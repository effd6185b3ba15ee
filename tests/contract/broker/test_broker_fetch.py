"""Unmodified consumers read from a broker what tidelog's own writers appended, and what other Kafka clients sent."""

import asyncio
import time
from collections.abc import Iterator

import aiokafka
import confluent_kafka
import pytest
from support.brokers import running_broker
from support.logs import START_MS
from support.waiting import PATIENCE_S

from tidelog.clients.producer.producer import Producer
from tidelog.log.lake import Lake
from tidelog.retention.compaction.run import LocalCompactor, compact

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "1",
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "0",
}
LONG_MS = 250_000  # twice as long as a test waits for anything


@pytest.fixture
def lake(tmp_path) -> Iterator[Lake]:
    with Lake(str(tmp_path)) as lake:
        yield lake


@pytest.fixture
def address(lake) -> Iterator[str]:
    with running_broker(lake) as address:
        yield address


def consumer(address: str, **config) -> confluent_kafka.Consumer:
    names = {key.replace("_", "."): value for key, value in config.items()}
    return confluent_kafka.Consumer(
        {"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False} | names
    )


def polled(reader: confluent_kafka.Consumer, count: int) -> list[confluent_kafka.Message]:
    found, until_s = [], time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < until_s:
        message = reader.poll(1.0)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message)
    return found


def read(address: str, topic: str, count: int, partitions: int = 1, offset: int = 0, **config) -> list:
    """Records as librdkafka reads them."""
    reader = consumer(address, **config)
    try:
        reader.assign([confluent_kafka.TopicPartition(topic, p, offset) for p in range(partitions)])
        return polled(reader, count)
    finally:
        reader.close()


async def read_aio(address: str, topic: str, count: int, partitions: int = 1, offset: int = 0) -> list:
    """The same as aiokafka reads them."""
    reader = aiokafka.AIOKafkaConsumer(bootstrap_servers=address)
    await reader.start()
    try:
        places = [aiokafka.TopicPartition(topic, p) for p in range(partitions)]
        reader.assign(places)
        for place in places:
            reader.seek(place, offset)
        found: list = []
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < count:
                for records in (await reader.getmany(timeout_ms=1000)).values():
                    found += records
        return found
    finally:
        await reader.stop()


def test_both_clients_read_what_was_appended(lake, address) -> None:
    lake.create_topic("t", 3)
    records = [
        {
            "key": None if n % 5 == 0 else f"k{n}".encode(),
            "value": None if n % 7 == 0 else f"v{n}".encode(),
            "headers": [("h", b"1"), ("h", None)] if n % 3 == 0 else None,
            "timestamp": START_MS + n,
            "partition": n % 3,
        }
        for n in range(300)
    ]
    for at in range(0, 300, 50):
        lake.topic("t").append(records[at : at + 50])
    expected = sorted(
        (n % 3, n // 3, r["key"], r["value"], r["timestamp"], tuple(r["headers"] or ())) for n, r in enumerate(records)
    )
    found = read(address, "t", 300, 3)
    assert expected == sorted(
        (m.partition(), m.offset(), m.key(), m.value(), m.timestamp()[1], tuple(m.headers() or ())) for m in found
    )
    found = asyncio.run(read_aio(address, "t", 300, 3))
    assert expected == sorted((m.partition, m.offset, m.key, m.value, m.timestamp, tuple(m.headers)) for m in found)


def test_a_consumer_starts_where_it_seeks(lake, address) -> None:
    lake.create_topic("t")
    lake.topic("t").append([{"value": str(n).encode(), "timestamp": START_MS + n} for n in range(1000)])
    assert [m.value() for m in read(address, "t", 10, offset=990)] == [str(n).encode() for n in range(990, 1000)]
    reader = consumer(address)
    place = confluent_kafka.TopicPartition("t", 0, 500)
    reader.assign([place])
    assert polled(reader, 1)[0].offset() == 500
    reader.seek(confluent_kafka.TopicPartition("t", 0, 10))
    assert polled(reader, 1)[0].offset() == 10
    assert reader.get_watermark_offsets(place, timeout=PATIENCE_S) == (0, 1000)
    times = [confluent_kafka.TopicPartition("t", 0, START_MS + ms) for ms in (0, 700)]
    assert [reader.offsets_for_times([one], timeout=PATIENCE_S)[0].offset for one in times] == [0, 700]
    reader.close()


def test_offsets_of_a_client_of_asyncio(lake, address) -> None:
    lake.create_topic("t")
    lake.topic("t").append([{"value": b"x", "timestamp": START_MS + n} for n in range(10)])
    lake.delete_records("t", {0: 2})

    async def ask():
        reader = aiokafka.AIOKafkaConsumer(bootstrap_servers=address)
        await reader.start()
        place = aiokafka.TopicPartition("t", 0)
        try:
            times = await reader.offsets_for_times({place: START_MS + 5})
            ends, begins = await reader.end_offsets([place]), await reader.beginning_offsets([place])
            return (times[place].offset, times[place].timestamp), begins[place], ends[place]
        finally:
            await reader.stop()

    assert asyncio.run(ask()) == ((5, START_MS + 5), 2, 10)


@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_an_offset_that_is_gone_is_reset(lake, address, reset) -> None:
    lake.create_topic("t")
    lake.topic("t").append([{"value": str(n).encode()} for n in range(10)])
    lake.delete_records("t", {0: 6})
    reader = consumer(address, auto_offset_reset=reset)
    reader.assign([confluent_kafka.TopicPartition("t", 0, 2)])
    if reset == "earliest":
        assert [m.offset() for m in polled(reader, 4)] == [6, 7, 8, 9]
    else:
        until_s, message = time.monotonic() + PATIENCE_S, None
        while message is None and time.monotonic() < until_s:  # until the reset is through, records go by
            lake.topic("t").append([{"value": b"new"}])
            message = reader.poll(0.5)
        assert message is not None
        assert message.value() == b"new"
    reader.close()


def test_compacted_topics_are_read_to_their_end(lake, address) -> None:
    """Gaps within, and at the end where tombstones were."""
    lake.create_topic("t", config=COMPACTED)
    for n in range(20):
        lake.topic("t").append(
            [{"key": f"k{n % 3}".encode(), "value": f"v{n}".encode()}, {"key": b"gone", "value": b"x"}]
        )
    lake.topic("t").append([{"key": b"gone", "value": None}])
    for later_ms in (60_000, 120_000):
        compact(lake, "t", now_ms=lake.clock.now_ms() + later_ms, compactor=LocalCompactor(lake.storage, lake.ids))
    expected = [(r["offset"], r["value"]) for b in lake.topic("t").read(0) for r in b.to_pylist()]
    assert [value for _, value in expected] == [b"v17", b"v18", b"v19"]
    assert lake.offsets("t")[0] == (0, 41)
    reader = consumer(address, enable_partition_eof=True)
    place = confluent_kafka.TopicPartition("t", 0, 0)
    reader.assign([place])
    found, message = [], reader.poll(PATIENCE_S)
    while message is not None and message.error() is None:
        found.append((message.offset(), message.value()))
        message = reader.poll(PATIENCE_S)
    assert found == expected
    assert message is not None
    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
    assert message.offset() == 41
    reader.close()
    lake.topic("t").append([{"key": b"k", "value": b"after"}])
    records = asyncio.run(read_aio(address, "t", 4))
    assert [(m.offset, m.value) for m in records] == [*expected, (41, b"after")]


def test_records_larger_than_all_limits_are_read(lake, address) -> None:
    lake.create_topic("t", config={"max.message.bytes": "10000000"})
    values = [bytes([n]) * 3_000_000 for n in range(3)]
    for value in values:
        lake.topic("t").append([{"value": value}])
    small = {"fetch_message_max_bytes": 1000, "fetch_max_bytes": 10_000_000, "receive_message_max_bytes": 20_000_000}
    assert [m.value() for m in read(address, "t", 3, **small)] == values
    assert [m.value for m in asyncio.run(read_aio(address, "t", 3))] == values


def test_many_partitions_share_one_consumer(lake, address) -> None:
    lake.create_topic("t", 60)
    lake.topic("t").append([{"value": str(n).encode(), "partition": n % 60} for n in range(600)])
    found = read(address, "t", 600, 60)
    assert sorted(m.value() for m in found) == sorted(str(n).encode() for n in range(600))
    assert len(asyncio.run(read_aio(address, "t", 600, 60))) == 600


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_a_kafka_client_sends_others_read_hot_and_cold(lake, codec) -> None:
    lake.create_topic("t")
    values = [b"%d" % n * 50 for n in range(500)]
    with running_broker(lake) as address:
        writer = confluent_kafka.Producer({"bootstrap.servers": address, "compression.type": codec, "linger.ms": 20})
        for value in values:
            writer.produce("t", value, partition=0)
        assert writer.flush(PATIENCE_S) == 0
        del writer
        assert [m.value() for m in read(address, "t", 500)] == values
    with running_broker(lake) as address:  # one that has nothing in memory
        assert [m.value() for m in read(address, "t", 500)] == values
        assert [m.value for m in asyncio.run(read_aio(address, "t", 500))] == values


def test_a_waiting_consumer_gets_what_is_appended(lake, address) -> None:
    """Through another handle of the lake, as another process would; the broker gets no word of it.

    A fetch that no append ended would be answered long after the test has lost its patience.
    """
    lake.create_topic("t")
    lake.topic("t").append([{"value": b"first"}])
    reader = consumer(address, fetch_wait_max_ms=LONG_MS, socket_timeout_ms=LONG_MS + 10_000)
    reader.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    assert polled(reader, 1)[0].value() == b"first"
    with Lake(lake.storage.uri) as other:
        for n in range(20):
            other.topic("t").append([{"value": str(n).encode()}])
            assert [m.value() for m in polled(reader, 1)] == [str(n).encode()]
        with Producer({"lake": lake.storage.uri}) as producer:
            producer.produce("t", b"last")
            assert producer.flush() == 0
        assert [m.value() for m in polled(reader, 1)] == [b"last"]
    reader.close()
