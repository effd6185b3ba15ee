"""A transactional producer and a consumer in one event loop. Arguments: address, topic, rounds."""

import asyncio
import logging
import sys

from confluent_kafka.aio import AIOConsumer, AIOProducer

logging.basicConfig(level=logging.CRITICAL)
ADDRESS, TOPIC, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
told = set()


async def error_cb(err):
    told.add(f"error {err}")


async def throttle_cb(event):
    told.add(f"throttled {event}")


async def stats_cb(text):
    told.add("statistics")


def common(conf):
    callbacks = {"error_cb": error_cb, "throttle_cb": throttle_cb, "stats_cb": stats_cb, "statistics.interval.ms": 50}
    return {"bootstrap.servers": ADDRESS, "logger": logging.getLogger(__name__), "debug": "conf", **callbacks, **conf}


async def produce():
    producer = AIOProducer(common({"transactional.id": "looped"}), max_workers=5)
    await producer.init_transactions()
    try:
        for number in range(ROUNDS):
            await producer.begin_transaction()
            futures = [await producer.produce(topic=TOPIC, key=f"k{i}", value=f"{number}.{i}") for i in range(10)]
            await producer.flush()
            assert all(msg.topic() == TOPIC for msg in await asyncio.gather(*futures))
            await producer.commit_transaction()
    finally:
        await producer.close()


async def consume():
    consumer = AIOConsumer(
        common(
            {
                "group.id": "loop",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                "enable.auto.offset.store": "false",
                "partition.assignment.strategy": "cooperative-sticky",
                "topic.metadata.refresh.interval.ms": 100,
            }
        )
    )

    async def on_assign(consumer, partitions):
        await consumer.incremental_assign(partitions)
        await consumer.pause(partitions)
        await consumer.resume(partitions)
        told.add("assigned")

    async def on_revoke(consumer, partitions):
        await consumer.commit()
        told.add("revoked")

    async def on_lost(consumer, partitions):
        told.add("lost")

    values = set()
    await consumer.subscribe([TOPIC], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
    try:
        while len(values) < 10 * ROUNDS:
            message = await consumer.poll(1.0)
            if message is None or message.error():
                continue
            values.add(message.value())
            await consumer.store_offsets(message=message)
        position = await consumer.position(await consumer.assignment())
        await consumer.commit()
        print(f"{len(values)} values, positions {sum(max(0, p.offset) for p in position)}")
    finally:
        await consumer.unsubscribe()
        await consumer.close()


async def main():
    await asyncio.gather(produce(), consume())


asyncio.run(main())
print(sorted(told))
