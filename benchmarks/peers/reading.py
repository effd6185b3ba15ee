"""How fast a consumer reads a topic from its beginning to its end."""

import time
from collections.abc import Callable
from typing import Any

from peer import KAFKA, TIDELOG, Peer

PARTITIONS = 8
_MESSAGES = 10_000
_ROWS = 100_000
_TIMEOUT_S = 30.0


def arms(peers: dict[str, Peer], topic: str, records: int) -> dict[str, Callable[[], float]]:
    """By system: read all of `topic` with a new consumer; the answer is in records a second."""
    return {
        KAFKA: lambda: rate(peers[KAFKA], topic, records, messages),
        TIDELOG: lambda: rate(peers[TIDELOG], topic, records, messages),
        "tidelog consume_table": lambda: rate(peers[TIDELOG], topic, records, _rows),
    }


def messages(consumer: Any) -> int:
    """Take some messages; how many."""
    found = consumer.consume(_MESSAGES, _TIMEOUT_S)
    if any(message.error() for message in found):
        raise RuntimeError(next(str(message.error()) for message in found if message.error()))
    return len(found)


def _rows(consumer: Any) -> int:
    return int(consumer.consume_table(_ROWS, _TIMEOUT_S).num_rows)


def rate(peer: Peer, topic: str, records: int, take: Callable[[Any], int]) -> float:
    """From the assignment to the last record."""
    consumer = peer.consumer()
    began, count = time.perf_counter(), 0
    consumer.assign([peer.place(topic, partition) for partition in range(PARTITIONS)])
    while count < records:
        found = take(consumer)
        if not found:
            raise RuntimeError(f"{count} of {records} records were read, and then no more")
        count += found
    took = time.perf_counter() - began
    consumer.close()
    return records / took
