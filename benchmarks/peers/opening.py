"""What it takes a client to get at a topic's newest record."""

import time
from collections.abc import Sequence
from typing import Any

from figures import percentile
from peer import Peer, flushed

_TIMEOUT_S = 60.0


def opened_ms(peer: Peer, topic: str, partition: int) -> float:
    """From nothing to the newest record: a new consumer asks where the partition ends and reads the last record."""
    began = time.perf_counter()
    consumer = peer.consumer()
    _, end = consumer.get_watermark_offsets(peer.place(topic, partition), _TIMEOUT_S)
    consumer.assign([peer.place(topic, partition, end - 1)])
    _polled(consumer)
    took_ms = (time.perf_counter() - began) * 1e3
    consumer.close()
    return took_ms


def appends_ms(peer: Peer, topic: str, partition: int, values: Sequence[bytes]) -> float:
    """p50 of an append of one record, acks=all."""
    producer = peer.producer()
    times_ms = []
    for value in values:
        began = time.perf_counter()
        producer.produce(topic, value, partition=partition)
        flushed(producer)
        times_ms.append((time.perf_counter() - began) * 1e3)
    producer.close()
    return percentile(times_ms[len(times_ms) // 5 :], 50)


def fetches_ms(peer: Peer, topic: str, partition: int, count: int) -> float:
    """p50 of a fetch of the newest record by a consumer that goes back to it again and again."""
    # librdkafka goes elsewhere once its last fetch, which waits for more at the end, has come back.
    consumer = peer.consumer(fetch_wait_max_ms=1)
    _, end = consumer.get_watermark_offsets(peer.place(topic, partition), _TIMEOUT_S)
    newest = peer.place(topic, partition, end - 1)
    consumer.assign([newest])
    _polled(consumer)
    times_ms = []
    for _ in range(count):
        began = time.perf_counter()
        consumer.seek(newest)
        _polled(consumer)
        times_ms.append((time.perf_counter() - began) * 1e3)
    consumer.close()
    return percentile(times_ms, 50)


def _polled(consumer: Any) -> None:
    message = consumer.poll(_TIMEOUT_S)
    if message is None or message.error():
        raise RuntimeError(f"no record: {message and message.error()}")
