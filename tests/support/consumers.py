"""Consumers for tests: quick timings, and polling until something is so."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.logs import values
from support.waiting import PATIENCE_S, eventually

from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.message import Message
from tidelog.clients.values.partitions import OFFSET_INVALID, TopicPartition
from tidelog.log.lake import Lake


def consumer(lake: str | Path | Lake, **conf: Any) -> Consumer:
    """A consumer of group `g` from the beginning; keywords are keys with `_` for `.`."""
    quick = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 200}
    callbacks = ("on_commit", "error_cb", "stats_cb")
    given = {key if key in callbacks else key.replace("_", "."): value for key, value in conf.items()}
    address = lake if isinstance(lake, Lake) else str(lake)
    return Consumer({"lake": address, "group.id": "g", "auto.offset.reset": "earliest", **quick, **given})


def at(offset: int = OFFSET_INVALID, partition: int = 0, topic: str = "t") -> TopicPartition:
    """A place in a topic."""
    return TopicPartition(topic, partition, offset)


def raised(call: Callable[[], object]) -> KafkaError:
    """The error that a call raises."""
    with pytest.raises(KafkaException) as caught:
        call()
    error: KafkaError = caught.value.args[0]
    return error


def fill(lake: Lake, topic: str, *texts: str, partition: int = 0) -> None:
    """Append values to a partition."""
    lake.topic(topic).append(values(*texts, partition=[partition] * len(texts)), acks=1)


def text(message: Message) -> str:
    """What a message says: its value, or the name of its error."""
    error = message.error()
    return error.name() if error is not None else message.value().decode()


def poll_some(reader: Consumer, count: int, timeout_s: float = PATIENCE_S) -> list[Message]:
    """The next messages and events, `count` of them, or fewer when the time is over."""
    return reader.consume(count, timeout_s)


def poll_texts(reader: Consumer, count: int, timeout_s: float = PATIENCE_S) -> list[str]:
    """What the next messages say."""
    return [text(m) for m in poll_some(reader, count, timeout_s)]


def exactly(reader: Consumer, *texts: str, then_s: float = 0.2) -> None:
    """See that the next messages say this, and that nothing comes for some time after them."""
    assert poll_texts(reader, len(texts)) == list(texts)
    assert poll_texts(reader, 1, then_s) == []


def poll_until(condition: Callable[[], bool], *readers: Consumer, timeout_s: float = PATIENCE_S) -> list[Message]:
    """Poll consumers in turns until a condition holds; returns what came."""
    found: list[Message] = []

    def polled() -> bool:
        if done := condition():
            return done
        found.extend(message for reader in readers if (message := reader.poll(0.01)) is not None)
        return False

    eventually(polled, "the condition while consumers poll", timeout_s)
    return found


def places(partitions: list[TopicPartition]) -> list[tuple[str, int]]:
    """Topics and numbers, sorted."""
    return sorted((p.topic, p.partition) for p in partitions)


def offsets(partitions: list[TopicPartition]) -> list[int]:
    """Offsets, in the order given."""
    return [p.offset for p in partitions]


@contextmanager
def filled_lake(folder: Path) -> Iterator[Lake]:
    """A lake with a topic `t` of four partitions, five records in each: partition p holds "p.0" to "p.4"."""
    with Lake(str(folder)) as opened:
        opened.create_topic("t", partitions=4)
        for partition in range(4):
            fill(opened, "t", *(f"{partition}.{i}" for i in range(5)), partition=partition)
        yield opened


class Told:
    """Callbacks that keep their arguments: [("assign", [("t", 0), ...]), ...]."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[tuple[str, int]]]] = []

    def subscribe(self, reader: Consumer, *topics: str) -> None:
        names = ("assign", "revoke", "lost")
        reader.subscribe(list(topics or ["t"]), **{f"on_{name}": self._callback(name) for name in names})

    def _callback(self, name: str) -> Any:
        return lambda _, partitions: self.calls.append((name, places(partitions)))
