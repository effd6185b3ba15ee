"""Group commit in tests: an engine on a lake in memory, what its entries are begun with, and how they are driven."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
from support.logs import CountingIds, FakeClock, memory_lake, quiet, values

from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.group_commit.engine import GroupCommit, PendingEntry
from tidelog.log.group_commit.producer_retries import ProducerRetries
from tidelog.log.group_commit.requests import ProduceRequests
from tidelog.log.lake import Lake
from tidelog.log.rules.sequences import ProducerBatch

# Where each engine's ids begin, beyond those of lakes.
_engines = count(10**11, 10**6)

# Some time, on a clock that begins at 1,000 s.
LONG_S = 120.0


def lake_with(partitions: int = 2, hook: Callable[..., None] = quiet, **config: str) -> tuple[Lake, Any, FakeClock]:
    """A lake with topic t; `config` with `_` for `.`."""
    lake, storage, clock = memory_lake(hook)
    lake.create_topic("t", partitions, {k.replace("_", "."): v for k, v in config.items()})
    return lake, storage, clock


def engine(lake: Lake, clock: FakeClock, helpers: Any = None, **retries: Any) -> GroupCommit:
    """An engine for topic t."""

    def open_topic() -> Any:
        lake.ensure_topic("t")
        return lake.topic("t")

    return GroupCommit(open_topic, clock, CountingIds(next(_engines)), ProducerRetries(**retries), helpers)


def records(
    *texts: str, partition: int | Sequence[int] = 0, timeout_s: float = LONG_S, now_s: float = 1000.0, **more: Any
) -> ProduceRequests:
    """A request of records without a producer, taken or refused as a whole."""
    chosen = [partition] * len(texts) if isinstance(partition, int) else partition
    return ProduceRequests(values(*texts), np.array([now_s + timeout_s]), np.array(chosen, np.int32), **more)


def sent(
    producer: int, first: int, *texts: str, epoch: int = 0, partition: int | Sequence[int] = 0, **more: Any
) -> ProduceRequests:
    """A request of a producer, each partition's records from sequence `first`."""
    one = records(*texts, partition=partition)
    assert one.partitions is not None
    counts = {int(p): int((one.partitions == p).sum()) for p in np.unique(one.partitions)}
    batch = ProducerBatch(producer, epoch, {p: (first, n) for p, n in counts.items()})
    return records(*texts, partition=partition, batches={0: batch}, **more)


def entries(lake: Lake) -> int:
    """The version of the topic's newest entry."""
    return lake.topic("t").state().version


def failing(times: int, method: str, phase: str, error: type[Exception] = StorageUnavailableError) -> Any:
    """A hook that fails the first `times` calls about the topic's log or segments."""
    left = [times]

    def hook(called: str, path: str, at: str) -> None:
        if (called, at) == (method, phase) and path.startswith("t/") and left[0]:
            left[0] -= 1
            raise error("the store says no")

    return hook


def drive(entry: PendingEntry, clock: FakeClock, until_unit: int | None = None, most: int = 200) -> None:
    """Let time pass and advance the entry until all its units have outcomes, or this one failed."""
    for _ in range(most):
        if entry.is_done or until_unit in entry.outcomes.errors:
            return
        clock.pass_s(entry.due_s())
        entry.advance()
    raise AssertionError("it goes on for ever")


def committed(group: GroupCommit, *requests: ProduceRequests) -> PendingEntry:
    """An entry after one step that answers all its units."""
    entry = group.begin(*requests)
    entry.advance()
    assert entry.is_done
    return entry


def answers(entry: PendingEntry, *requests: ProduceRequests) -> list[Any]:
    """Of each request its error's class, or the offsets of its rows, -1 for one that was there already."""
    starts = np.cumsum([0, *(one.table.num_rows for one in requests)])
    offsets = entry.outcomes.offsets(int(starts[-1])).tolist()
    return [
        type(entry.outcomes.errors[i]) if i in entry.outcomes.errors else offsets[starts[i] : starts[i + 1]]
        for i in range(len(requests))
    ]
