"""Clients for asyncio that make bytes of objects: plain serdes and those that are coroutine functions."""

import asyncio
import json
from typing import Any

import pytest
from support.producers import live_lake

from tidelog.aio import AsyncDeserializingConsumer, AsyncSerializingProducer
from tidelog.clients.values.errors import ConsumeError, KeySerializationError, ValueDeserializationError
from tidelog.clients.values.partitions import TopicPartition
from tidelog.log.lake import Lake
from tidelog.serialization import SerializationContext, StringDeserializer, StringSerializer


class Built:
    """A serde that a builder built."""

    def __init__(self) -> None:
        self.closed = 0
        self.cluster_id: Any = None

    async def __call__(self, given: Any, _: SerializationContext) -> Any:
        await asyncio.sleep(0)
        return json.loads(given) if isinstance(given, bytes) else json.dumps(given).encode()

    def set_async_cluster_id_resolver(self, resolver: Any) -> None:
        self.cluster_id = resolver

    async def aclose(self) -> None:
        self.closed += 1


class Builder:
    def __init__(self) -> None:
        self.built = Built()

    async def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Built, dict[str, Any]]:
        assert not is_key
        return self.built, {name: value for name, value in conf.items() if name != "registry"}


def start(lake: Lake) -> dict[str, Any]:
    return {"lake": lake, "group.id": "g", "registry": "r"}


def test_objects_go_there_and_back():
    lake, _ = live_lake()
    writing, reading = Builder(), Builder()

    async def main() -> None:
        to_bytes = {"key.serializer": StringSerializer(), "value.serializer.builder": writing}
        async with AsyncSerializingProducer[str, dict]({**start(lake), **to_bytes}, batch_size=10) as producer:
            assert await producer is producer
            delivered = await producer.produce("t", "k", {"left": 12}, headers=[("h", b"1")])
            await producer.flush()
            assert delivered.result().value() == b'{"left": 12}'
            assert await writing.built.cluster_id() == lake.uri
            with pytest.raises(KeySerializationError, match="7 of a record for topic 't'"):
                await producer.produce("t", 7, {})  # type: ignore[arg-type]
        to_objects = {"key.deserializer": StringDeserializer(), "value.deserializer.builder": reading}
        consumer = await AsyncDeserializingConsumer[str, dict]({**start(lake), **to_objects}, max_workers=3)
        await consumer.assign([TopicPartition("t", 0, 0)])
        message = await consumer.poll(20)
        assert message is not None
        assert (message.deserialized_key(), message.deserialized_value()) == ("k", {"left": 12})
        await consumer.close()

    asyncio.run(main())
    assert (writing.built.closed, reading.built.closed) == (1, 1)


def test_what_can_not_be_read_is_raised_and_events_are_told():
    lake, _ = live_lake()

    async def main() -> None:
        async with AsyncSerializingProducer({"lake": lake}) as producer:
            await producer.produce("t", value="{}")
            await producer.produce("t", value="{")
        conf = {"lake": lake, "group.id": "g", "value.deserializer": lambda data, _: json.loads(data)}
        async with AsyncDeserializingConsumer(conf) as consumer:
            await consumer.assign([TopicPartition("t", 0, 0)])
            (record,) = await consumer.consume(1, 20)
            assert record.value() == {}
            with pytest.raises(ValueDeserializationError):
                await consumer.poll(20)
            await consumer.assign([TopicPartition("t", 7)])
            (event,) = await consumer.consume(1, 20)
            assert event.error().name() == "UNKNOWN_TOPIC_OR_PART"
            await consumer.assign([TopicPartition("t", 8)])
            with pytest.raises(ConsumeError):
                await consumer.poll(20)

    asyncio.run(main())


def test_one_that_has_not_begun_says_so():
    async def main() -> None:
        with pytest.raises(RuntimeError, match="await it first"):
            await AsyncSerializingProducer({"lake": live_lake()[0]}).produce("t", "k")

    asyncio.run(main())


def test_what_was_built_is_closed_when_its_client_can_not_begin():
    builder = Builder()

    async def main() -> None:
        with pytest.raises(Exception, match="misspelt"):
            await AsyncSerializingProducer({"misspelt": 1, "value.serializer.builder": builder})

    asyncio.run(main())
    assert builder.built.closed == 1
