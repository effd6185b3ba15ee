"""Transactions in tests: lakes in memory with two topics and an input, and producers on them."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
import pytest
from support.logs import FakeClock, memory_lake, open_lake, quiet, read, values

from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import StorageFullError
from tidelog.log.lake import Lake
from tidelog.transactions.manager import TransactionManager
from tidelog.transactions.ports import GroupIdentity, OffsetToCommit
from tidelog.transactions.transaction_log import TransactionLog

GROUP = "g"


class AtOnce(Executor):
    """A background that does its work before `submit` returns: a crash in it is its caller's."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Process:
    """What one process has of a lake, all of it lost with the process."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        lake.background = AtOnce()
        self.log = TransactionLog(lake)
        self.groups = GroupLog(lake)

    def producer(self, transactional_id: str = "x", **more: Any) -> TransactionManager:
        return TransactionManager(self.lake, transactional_id, LoggedOffsets(self.groups), **more)

    def ready(self, transactional_id: str = "x", **more: Any) -> TransactionManager:
        """A producer that is initialized."""
        producer = self.producer(transactional_id, **more)
        producer.init()
        return producer

    def stable(self) -> dict[tuple[str, int], int]:
        """The group's offsets, none of which waits for a transaction."""
        return {place: one.offset for place, one in self.groups.stable_offsets(GROUP).items()}

    def offsets(self) -> dict[tuple[str, int], int]:
        """The group's committed offsets, as any reader gets them."""
        return {place: one.offset for place, one in self.groups.offsets(GROUP).items()}

    def pending(self) -> int:
        return len(self.groups.written(GROUP).pending)


class SharedLake:
    """A lake in memory with several processes: topic `in` has ten records, topics `a` and `b` are written to."""

    def __init__(self, hook: Callable[[str, str, str], None] = quiet, **config: str) -> None:
        lake, self.storage, self.clock = memory_lake()
        lake.alter_config({k.replace("_", "."): v for k, v in config.items()})
        for topic in ("in", "a", "b"):
            lake.create_topic(topic, 1)
        lake.topic("in").append(values(*"0123456789"))
        self.first = Process(lake)
        self.storage.hook = hook

    def process(self) -> Process:
        """Another process, started now."""
        return Process(open_lake(self.storage, self.clock))

    def seen(self, *topics: str) -> list[list[str]]:
        """The topics' records, as a process reads them that starts now."""
        lake = open_lake(self.storage, self.clock)
        return [read(lake, topic) for topic in topics or ("a", "b")]


def stage(producer: TransactionManager, topic: str, *texts: str) -> None:
    producer.stage(topic, values(*texts), np.zeros(len(texts), np.int32))


def dies_before(shared: SharedLake, topic: str, producer: TransactionManager) -> None:
    """The producer's commit is decided, and it dies before its entry in this topic."""

    def die(method: str, path: str, phase: str) -> None:
        if path.startswith(f"{topic}/_delta_log") and method == "put_if_absent":
            raise StorageFullError("dead")

    shared.storage.hook = die
    with pytest.raises(StorageFullError):
        producer.commit()
    shared.storage.hook = lambda *call: None


def offsets_to(offset: int, topic: str = "in") -> dict[tuple[str, int], OffsetToCommit]:
    return {(topic, 0): OffsetToCommit(offset)}


def copy(producer: TransactionManager, text: str, offset: int | None = None) -> None:
    """One whole transaction: a record for `a` and `b`, and how far the input was read."""
    producer.begin()
    stage(producer, "a", text)
    stage(producer, "b", text)
    if offset is not None:
        producer.add_offsets(GroupIdentity(GROUP), offsets_to(offset))
    producer.commit()


def pass_time(clock: FakeClock, producer_timeout_s: float = 60.0) -> None:
    clock.pass_s(producer_timeout_s)
