"""aiokafka sends records by every codec and reads them back as a member of a group."""

import asyncio
import json
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

address, topic, group, codecs, number, transactional_id = sys.argv[1:7]
count = int(number)


async def send(producer: AIOKafkaProducer, prefix: str) -> None:
    sent = [
        await producer.send(
            topic,
            key=f"{prefix}-{i}".encode(),
            value=None if i % 7 == 0 else f"value {i}".encode(),
            headers=[("number", str(i).encode())],
            timestamp_ms=1_700_000_000_000 + i,
        )
        for i in range(count)
    ]
    await asyncio.gather(*sent)


async def produce(codec: str) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=address,
        compression_type=None if codec == "none" else codec,
        transactional_id=transactional_id or None,
    )
    await producer.start()
    if transactional_id:
        await producer.begin_transaction()
        await send(producer, "aborted")
        await producer.abort_transaction()
        await producer.begin_transaction()
    await send(producer, codec)
    if transactional_id:
        await producer.commit_transaction()
    await producer.stop()


async def consume(wanted: int) -> None:
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
    )
    await consumer.start()
    found = 0
    while found < wanted:
        for records in (await consumer.getmany(timeout_ms=1000)).values():
            for record in records:
                found += 1
                value = None if record.value is None else record.value.decode()
                line = {"partition": record.partition, "offset": record.offset, "key": record.key.decode()}
                seen = dict(record.headers)["number"].decode()
                print(json.dumps(line | {"value": value, "number": seen, "timestamp": record.timestamp}))
    await consumer.commit()
    await consumer.stop()


async def main() -> None:
    for codec in codecs.split(","):
        await produce(codec)
    await consume(count * len(codecs.split(",")))


asyncio.run(main())
