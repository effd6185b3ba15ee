"""The way of a record from a Kafka client to every kind of reader: what is sent, and how each reader shows it."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import confluent_kafka
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from deltalake import DeltaTable
from hypothesis import strategies as st

import tidelog
from tidelog.log.lake import Lake

PARTITIONS = 2
WAIT_S = 60
Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """What a client sends to a partition."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


# {(partition, offset): record}
Read = dict[tuple[int, int], Record]

_bytes = st.none() | st.binary(max_size=30) | st.binary(min_size=1, max_size=4).map(lambda unit: unit * 2_000)
# A header's name goes through C strings in librdkafka's Python binding, which end at a zero byte.
_names = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)
records = st.builds(
    Record,
    st.integers(0, PARTITIONS - 1),
    _bytes,
    _bytes,
    st.lists(st.tuples(_names, st.none() | st.binary(max_size=10)), max_size=3).map(tuple),
    st.integers(1, 1_700_000_000_000),
)
codecs = st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"])


def send(address: str, topic: str, codec: str, sent: Sequence[Record]) -> None:
    """Send by librdkafka, in this order."""
    refused: list[object] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": address, "compression.type": codec, "enable.idempotence": True, "linger.ms": 5}
    )
    for one in sent:
        producer.produce(
            topic,
            one.value,
            one.key,
            one.partition,
            headers=list(one.headers),
            timestamp=one.timestamp_ms,
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
    assert producer.flush(WAIT_S) == 0
    assert refused == []


def placed(sent: Iterable[Record]) -> Read:
    """What every reader of an empty topic is to find once these were sent."""
    ends = [0] * PARTITIONS
    found: Read = {}
    for one in sent:
        found[one.partition, ends[one.partition]] = one
        ends[one.partition] += 1
    return found


def by_librdkafka(address: str, topic: str, count: int) -> Read:
    """As confluent-kafka reads them."""
    return _polled(confluent_kafka, {"bootstrap.servers": address}, topic, count)


def by_consumer(lake: Lake, topic: str, count: int) -> Read:
    """As tidelog's own `Consumer` reads them, from the lake."""
    return _polled(tidelog, {"lake": lake.uri}, topic, count)


def _polled(clients: Any, where: dict[str, str], topic: str, count: int) -> Read:
    consumer = clients.Consumer(where | {"group.id": "none", "enable.auto.commit": False})
    consumer.assign([clients.TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: Read = {}
    last: dict[int, int] = {}
    try:
        while len(found) < count:
            message = consumer.poll(WAIT_S)
            assert message is not None, f"{len(found)} of {count} records came"
            assert message.error() is None
            place = message.partition(), message.offset()
            assert place[1] > last.get(place[0], -1)
            last[place[0]] = place[1]
            headers = tuple(message.headers() or ())
            found[place] = Record(place[0], message.key(), message.value(), headers, message.timestamp()[1])
        return found
    finally:
        consumer.close()


def by_aiokafka(address: str, topic: str, count: int) -> Read:
    """As aiokafka reads them."""

    async def read() -> Read:
        consumer = AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
        await consumer.start()
        found: Read = {}
        deadline_s = time.monotonic() + WAIT_S
        try:
            places = [AioPartition(topic, partition) for partition in range(PARTITIONS)]
            consumer.assign(places)
            await consumer.seek_to_beginning(*places)
            while len(found) < count:
                assert time.monotonic() < deadline_s, f"{len(found)} of {count} records came"
                for batch in (await consumer.getmany(timeout_ms=1000)).values():
                    for one in batch:
                        place = one.partition, one.offset
                        found[place] = Record(place[0], one.key, one.value, tuple(one.headers), one.timestamp)
            return found
        finally:
            await consumer.stop()

    return asyncio.run(read())


def by_topic(lake: Lake, topic: str) -> Read:
    """As `Topic.read` reads them."""
    return {
        (row["partition"], row["offset"]): _of_row(row)
        for partition in range(PARTITIONS)
        for batch in lake.topic(topic).read(partition, include_headers=True)
        for row in batch.to_pylist()
    }


def by_deltalake(lake: Lake, topic: str) -> Read:
    """As the package deltalake reads the topic's table."""
    table = DeltaTable(f"{lake.uri}/{topic}").to_pyarrow_table()
    return {(row["partition"], row["base_offset"] + row["position"]): _of_row(row) for row in table.to_pylist()}


def _of_row(row: dict[str, Any]) -> Record:
    headers = tuple((one["key"], one["value"]) if isinstance(one, dict) else tuple(one) for one in row["headers"] or ())
    return Record(row["partition"], row["key"], row["value"], headers, round(row["timestamp"].timestamp() * 1000))
