"""Random faults under group commit: what is acknowledged is there once, in order, at the offsets that were told."""

import random
from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.logs import CountingIds, memory_lake, open_lake, quiet, read, values

from tidelog.log.base.errors import DeliveryTimeoutError, StorageUnavailableError
from tidelog.log.group_commit.engine import REPEATED, GroupCommit, Limits, Submission
from tidelog.log.rules.sequences import ProducerBatch

PRODUCERS, PARTITIONS = 3, 2


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.floats(0, 0.6))
def test_acknowledged_records_are_there_once_and_in_order(seed: int, rate: float) -> None:
    rng = random.Random(seed)
    lake, storage, clock = memory_lake()
    lake.create_topic("t", PARTITIONS)
    other = open_lake(storage, clock)

    def hook(method: str, path: str, phase: str) -> None:
        if path.startswith("t/") and rng.random() < rate:
            if rng.random() < 0.1:
                storage.hook = quiet
                other.topic("t").append(values("x", partition=[0]))
                storage.hook = hook
            raise StorageUnavailableError("no answer")

    group = GroupCommit(lambda: lake.topic("t"), clock, CountingIds(9_000_000), Limits(entry_bytes=60, linger_s=0))
    following: dict[tuple[int, int], int] = defaultdict(int)
    waiting = []
    for number in range(rng.randint(1, 12)):
        producer, partition, count = rng.randrange(PRODUCERS), rng.randrange(PARTITIONS), rng.randint(1, 3)
        first = following[producer, partition]
        following[producer, partition] += count
        texts = [f"{producer}-{partition}-{first + i}" for i in range(count)]
        batch = ProducerBatch(producer, 0, {partition: (first, count)})
        future = group.submit(
            Submission(
                values(*texts), np.full(count, partition, np.int32), batch, acks=rng.choice([1, -1]), timeout_s=1e6
            )
        )
        waiting.append((future, partition, texts))
        if number % 3 == 0:
            storage.hook = hook
            group.run_once()
            storage.hook = quiet
    storage.hook = hook
    for turn in range(400):
        if turn == 300:
            storage.hook = quiet
        due = group.due_s()
        if due is None:
            break
        clock.pass_s(due)
        group.run_once()
    storage.hook = quiet
    found = {p: read(lake, "t", p) for p in range(PARTITIONS)}
    for future, partition, texts in waiting:
        assert not isinstance(future.exception(0), DeliveryTimeoutError)
        ((first, end),) = future.result(0).ranges.values()
        if (first, end) != REPEATED:
            assert found[partition][first:end] == texts
    for (producer, partition), count in following.items():
        own = [v for v in found[partition] if v.startswith(f"{producer}-")]
        assert own == [f"{producer}-{partition}-{i}" for i in range(count)]
