"""Group commit in tests: an engine on a lake in memory, what is submitted, and how it is driven."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import count
from typing import Any

import numpy as np
from support.logs import CountingIds, FakeClock, memory_lake, quiet, values

from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.group_commit.engine import GroupCommit, Landed, Limits, Submission
from tidelog.log.lake import Lake
from tidelog.log.rules.sequences import ProducerBatch

# Where each engine's ids begin, beyond those of lakes.
_engines = count(10**11, 10**6)


def lake_with(partitions: int = 2, hook: Callable[..., None] = quiet, **config: str) -> tuple[Lake, Any, FakeClock]:
    """A lake with topic t; `config` with `_` for `.`."""
    lake, storage, clock = memory_lake(hook)
    lake.create_topic("t", partitions, {k.replace("_", "."): v for k, v in config.items()})
    return lake, storage, clock


def engine(lake: Lake, clock: FakeClock, helpers: Any = None, **limits: Any) -> GroupCommit:
    """An engine for topic t."""

    def open_topic() -> Any:
        lake.ensure_topic("t")
        return lake.topic("t")

    return GroupCommit(open_topic, clock, CountingIds(next(_engines)), Limits(**limits), helpers)


def records(*texts: str, partition: int | Sequence[int] = 0, **more: Any) -> Submission:
    """Records of nobody in particular."""
    chosen = [partition] * len(texts) if isinstance(partition, int) else partition
    return Submission(values(*texts), np.array(chosen, np.int32), **more)


def sent(
    producer: int, first: int, *texts: str, epoch: int = 0, partition: int | Sequence[int] = 0, **more: Any
) -> Submission:
    """Records of a producer, each partition's from sequence `first`."""
    one = records(*texts, partition=partition, **more)
    counts = {int(p): int((one.partitions == p).sum()) for p in np.unique(one.partitions)}
    batch = ProducerBatch(producer, epoch, {p: (first, n) for p, n in counts.items()})
    return records(*texts, partition=partition, producer=batch, **more)


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


def drive(group: GroupCommit, clock: FakeClock, future: Future[Landed], most: int = 200) -> None:
    """Let time pass and drive the engine until the future is resolved."""
    for _ in range(most):
        if future.done():
            return
        due = group.due_s()
        assert due is not None
        clock.pass_s(due)
        group.run_once()
    raise AssertionError("it goes on for ever")
