"""Producers on a lake in memory whose store fails when a test says so, on the machine's own clock."""

from collections.abc import Callable
from typing import Any

from support.faults import FaultyStorage
from support.logs import CountingIds, quiet
from support.memory_disk import MemoryDisk

from tidelog.clients.producer.producer import Producer
from tidelog.log.base.clock import SystemClock
from tidelog.log.lake import Lake

_stores = iter(range(1 << 30))


def live_lake(
    hook: Callable[[str, str, str], None] = quiet, clock: SystemClock | None = None
) -> tuple[Lake, FaultyStorage]:
    """A lake in memory with real time."""
    clock = clock or SystemClock()
    storage = FaultyStorage(MemoryDisk(f"producers-{next(_stores)}", clock), hook)
    return Lake(storage.uri, storage=storage, clock=clock, ids=CountingIds(1_000_000 * next(_stores))), storage


def producer(lake: Lake, **conf: Any) -> Producer:
    """A producer of the lake; `conf` with `_` for `.`, but for callbacks."""
    keys = {k if k.endswith("_cb") or k == "on_delivery" else k.replace("_", "."): v for k, v in conf.items()}
    return Producer({"lake": lake, **keys})


class Delivered:
    """A delivery callback that keeps its arguments."""

    def __init__(self) -> None:
        self.all: list[tuple[Any, Any]] = []

    def __call__(self, error: Any, message: Any) -> None:
        self.all.append((error, message))

    @property
    def codes(self) -> list[int | None]:
        """Each record's error code."""
        return [None if error is None else error.code() for error, _ in self.all]

    @property
    def places(self) -> list[tuple[Any, Any, Any]]:
        """(partition, offset, value) of each record."""
        return [(m.partition(), m.offset(), m.value()) for _, m in self.all]
