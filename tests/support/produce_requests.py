"""Produce requests in tests: record batches as clients write them, and a broker's answers without a connection."""

import asyncio
import io
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer
from support.logs import START_MS

from tidelog.broker.base.calls import Call, Encoded, Peer
from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.broker import Broker
from tidelog.broker.wire.apis import OFFERED, ApiKey
from tidelog.broker.wire.messages import decode
from tidelog.log.lake import Lake

NEWEST = OFFERED[ApiKey.PRODUCE].last
# Codecs by their numbers in a batch.
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)


def batch(
    *values: bytes | None,
    key: bytes | None = b"k",
    producer: tuple[int, int, int] = (-1, -1, -1),
    codec: int = NONE,
    timestamp: int = START_MS,
    headers: Sequence[tuple[str, bytes | None]] = (),
    transactional: bool = False,
) -> bytes:
    """A record batch; `producer`: its id, epoch and first sequence."""
    producer_id, epoch, sequence = producer
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        batch_size=1 << 30,
    )
    for at, value in enumerate(values):
        builder.append(at, timestamp, key, value, list(headers))
    return bytes(builder.build())


def encoded_produce(
    version: int,
    topics: Mapping[str | UUID, Mapping[int, bytes | None]],
    acks: int = -1,
    timeout_s: float = 30.0,
    transactional_id: str | None = None,
) -> bytes:
    """A request without its header: {topic: {partition: records}}."""
    schema = load_request_schema(ApiKey.PRODUCE, version)
    module = __import__(schema.__module__, fromlist=["x"])
    named = "topic_id" if version >= 13 else "name"
    request = schema(
        transactional_id=transactional_id,
        acks=acks,
        timeout=timedelta(seconds=timeout_s),
        topic_data=tuple(
            module.TopicProduceData(
                **{named: topic},
                partition_data=tuple(module.PartitionProduceData(index=p, records=r) for p, r in partitions.items()),
            )
            for topic, partitions in topics.items()
        ),
    )
    buffer = io.BytesIO()
    entity_writer(schema)(buffer, request)
    return buffer.getvalue()


def produce_body(version: int, topics: Any, **more: Any) -> Any:
    """The same as its handler sees it."""
    return decode(ApiKey.PRODUCE, version, memoryview(encoded_produce(version, topics, **more)))


class Produced:
    """A broker that is asked to produce, without a connection."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    async def ask(self, version: int, topics: Any, **more: Any) -> Any:
        """The answer's entity; None when there is none."""
        return await self.send(version, produce_body(version, topics, **more))

    def call(self, version: int, body: Any) -> Call:
        """The request of this body."""
        return Call(ApiKey.PRODUCE, version, "test", body, Peer(), self.broker.clock.elapsed_s())

    async def send(self, version: int, body: Any) -> Any:
        """The same for a body."""
        reply = await self.broker.handlers[ApiKey.PRODUCE](self.call(version, body))
        if reply is None:
            return None
        assert isinstance(reply, Encoded)
        payload = b"".join(reply.pieces)
        answer, end = entity_reader(load_response_schema(ApiKey.PRODUCE, version))(payload, 0)
        assert end == len(payload)
        return answer

    async def one(
        self, records: bytes | None, version: int = 9, topic: Any = "t", partition: int = 0, **more: Any
    ) -> Any:
        """The answer for one partition."""
        answer = await self.ask(version, {topic: {partition: records}}, **more)
        ((found,),) = (one.partition_responses for one in answer.responses)
        return found


def with_broker(lake: Lake, act: Callable[[Produced], Coroutine[Any, Any, Any]], **settings: Any) -> Any:
    """What `act` returns with a broker over the lake, in a loop of its own."""

    async def run() -> Any:
        broker = Broker(lake, BrokerSettings({}, 1, **settings))
        try:
            return await asyncio.wait_for(act(Produced(broker)), 30)
        finally:
            await broker.close()

    return asyncio.run(run())


def read_back(lake: Lake, topic: str = "t") -> dict[int, list[bytes | None]]:
    """{partition: the values of its records}."""
    handle, found = lake.topic(topic), {}
    for partition in range(handle.state().partitions):
        values: list[bytes | None] = []
        for records in handle.read(partition):
            values += records.column("value").to_pylist()
        found[partition] = values
    return found


def told(found: Any) -> tuple[int, int]:
    """The code and the base offset of one partition's answer."""
    return int(found.error_code), found.base_offset
